// What a phone shows of the channel's messages. Everything that people wrote is only ever text.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const MARKS = /\*(\S|\S[^*\n]*\S)\*|_(\S|\S[^_\n]*\S)_|(https?:\/\/[^\s<>]+[^\s<>.,:;!?)])/g;
const TICKS = { sending: ["○", "Being sent"], sent: ["✓", "Sent"], read: ["✓✓", "Read"], failed: ["!", "Not sent"] };

export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

// *bold*, _italic_ and links, as the channel writes them.
function marked(text) {
  const paragraph = make("p", "words");
  let end = 0;
  for (const found of text.matchAll(MARKS)) {
    const before = text[found.index - 1];
    if (before && /[\w*]/.test(before)) continue;
    paragraph.append(text.slice(end, found.index), mark(found));
    end = found.index + found[0].length;
  }
  paragraph.append(text.slice(end));
  return paragraph;
}

function mark([, bold, italic, address]) {
  if (bold) return make("strong", "", bold);
  if (italic) return make("em", "", italic);
  return link(address, address);
}

function link(address, words) {
  const element = make("a", "", words);
  if (/^https?:\/\//.test(address)) element.href = address;
  element.target = "_blank";
  element.rel = "noopener noreferrer";
  return element;
}

function foot(at, ...more) {
  const time = make("time", "", clock.format(at));
  time.dateTime = at.toISOString();
  time.title = at.toLocaleString();
  return make("span", "foot", time, ...more);
}

function unseen(words) {
  return make("span", "unseen", words);
}

export function ownBubble(entry) {
  const bubble = make("div", "bubble own", unseen("You: "));
  if (entry.picture) {
    const picture = make("img", "photo");
    picture.src = entry.picture;
    picture.alt = "The picture that you sent";
    bubble.append(picture);
  }
  if (entry.text) {
    const words = marked(entry.text);
    if (entry.kind) words.classList.add(entry.kind);
    bubble.append(words);
  }
  const tick = make("span", "tick");
  // That it was read in the meantime is nothing to interrupt somebody for.
  tick.setAttribute("aria-live", "off");
  bubble.append(foot(new Date(entry.at), tick));
  showState(bubble, entry.state);
  return bubble;
}

export function showState(bubble, state) {
  const [sign, meaning] = TICKS[state] || TICKS.sent;
  const shown = make("span", state, sign);
  shown.setAttribute("aria-hidden", "true");
  bubble.querySelector(".tick").replaceChildren(shown, unseen(meaning));
}

// One message may be several bubbles. `tap` is told what was tapped on.
export function bubbles(message, tap) {
  const at = new Date(message.at);
  if (!message.parts.length) {
    return [make("div", "bubble", make("p", "words quiet", "This message can no longer be read."), foot(at))];
  }
  return message.parts.map((part) => {
    const group = make("div", "group");
    const bubble = make("div", "bubble", unseen("Tapgate: "));
    group.append(bubble);
    (SHOWN[part.type] || unknown)(part[part.type], bubble, group, tap);
    bubble.append(foot(at));
    return group;
  });
}

const SHOWN = {
  text: (text, bubble) => bubble.append(marked(text.body)),
  document: (file, bubble) => {
    bubble.append(make("p", "file", link(file.link, file.filename)));
    if (file.caption) bubble.append(marked(file.caption));
  },
  template: (template, bubble, group) => {
    bubble.append(marked(template.text));
    if (!template.code) return;
    const copy = button("Copy code");
    copy.dataset.copy = template.code;
    group.append(choices(copy));
  },
  interactive: (content, bubble, group, tap) => {
    bubble.append(marked(content.body.text));
    const { action } = content;
    if (content.type === "button") {
      group.append(choices(...action.buttons.map(({ reply }) => button(reply.title, () => tap.option(reply, "button")))));
    } else if (content.type === "list") {
      const opener = button(action.button, () => tap.list(action, opener));
      opener.classList.add("opens-list");
      opener.setAttribute("aria-haspopup", "dialog");
      group.append(choices(opener));
    } else if (content.type === "flow") {
      const { flow_cta: title, flow_token: token } = action.parameters;
      const opener = button(title, () => tap.form(token, opener));
      opener.setAttribute("aria-haspopup", "dialog");
      group.append(choices(opener));
    }
  },
};

function unknown(_, bubble) {
  bubble.append(make("p", "words quiet", "This kind of message is not shown here."));
}

function choices(...buttons) {
  return make("div", "choices", ...buttons);
}

function button(words, act) {
  const element = make("button", "", words);
  element.type = "button";
  if (act) element.addEventListener("click", act);
  return element;
}
