// Renders messages of the channel as chat bubbles. Message content is inserted as text only.

const timeFormat = new Intl.DateTimeFormat(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const MARKUP = /\*(\S|\S[^*\n]*\S)\*|_(\S|\S[^_\n]*\S)_|(https?:\/\/[^\s<>]+[^\s<>.,:;!?)])/g;
const TICKS = { sending: ["○", translate("Sending")], sent: ["✓", translate("Sent")], read: ["✓✓", translate("Read")], failed: ["!", translate("Not sent")] };

export function createElement(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

// Renders *bold*, _italic_ and links, the markup of the channel.
function renderMarkup(text) {
  const paragraph = createElement("p", "text");
  let end = 0;
  for (const match of text.matchAll(MARKUP)) {
    const before = text[match.index - 1];
    if (before && /[\w*]/.test(before)) continue;
    paragraph.append(text.slice(end, match.index), renderMatch(match));
    end = match.index + match[0].length;
  }
  paragraph.append(text.slice(end));
  return paragraph;
}

function renderMatch([, bold, italic, url]) {
  if (bold) return createElement("strong", "", bold);
  if (italic) return createElement("em", "", italic);
  return createLink(url, url);
}

function createLink(url, label) {
  const element = createElement("a", "", label);
  if (/^https?:\/\//.test(url)) element.href = url;
  element.target = "_blank";
  element.rel = "noopener noreferrer";
  return element;
}

function createFooter(at, ...more) {
  const time = createElement("time", "", timeFormat.format(at));
  time.dateTime = at.toISOString();
  time.title = at.toLocaleString();
  return createElement("span", "footer", time, ...more);
}

function createHiddenText(text) {
  return createElement("span", "visually-hidden", text);
}

export function renderSent(entry) {
  const bubble = createElement("div", "bubble own", createHiddenText(`${translate("You:")} `));
  if (entry.picture) {
    const picture = createElement("img", "photo");
    picture.src = entry.picture;
    picture.alt = translate("Image you sent");
    bubble.append(picture);
  }
  if (entry.text) {
    const text = renderMarkup(entry.text);
    if (entry.kind) text.classList.add(entry.kind);
    bubble.append(text);
  }
  const tick = createElement("span", "tick");
  // Screen readers do not announce delivery states.
  tick.setAttribute("aria-live", "off");
  bubble.append(createFooter(new Date(entry.at), tick));
  showState(bubble, entry.state);
  return bubble;
}

export function showState(bubble, state) {
  const [symbol, label] = TICKS[state] || TICKS.sent;
  const icon = createElement("span", state, symbol);
  icon.setAttribute("aria-hidden", "true");
  bubble.querySelector(".tick").replaceChildren(icon, createHiddenText(label));
}

// Renders a received message, one bubble per part. `handlers` are called when an option, a list or
// a form is tapped.
export function renderReceived(message, handlers) {
  const at = new Date(message.at);
  if (!message.parts.length) {
    return [createElement("div", "bubble", createElement("p", "text quiet", translate("This message is no longer available.")), createFooter(at))];
  }
  return message.parts.map((part) => {
    const group = createElement("div", "group");
    const bubble = createElement("div", "bubble", createHiddenText("Tapgate: "));
    group.append(bubble);
    (RENDERERS[part.type] || renderUnsupported)(part[part.type], bubble, group, handlers);
    bubble.append(createFooter(at));
    return group;
  });
}

const RENDERERS = {
  text: (text, bubble) => bubble.append(renderMarkup(text.body)),
  sms: (sms, bubble) => {
    bubble.classList.add("sms");
    bubble.append(createElement("span", "badge", "SMS"), createElement("p", "text", sms.text));
  },
  document: (file, bubble) => {
    bubble.append(createElement("p", "file", createLink(file.link, file.filename)));
    if (file.caption) bubble.append(renderMarkup(file.caption));
  },
  template: (template, bubble, group, handlers) => {
    bubble.append(renderMarkup(template.text));
    if (template.buttons) {
      group.append(createChoices(...template.buttons.map((button) => createButton(button.title, () => handlers.option(button, "template")))));
    }
    if (!template.code) return;
    const copy = createButton(translate("Copy code"));
    copy.dataset.copy = template.code;
    group.append(createChoices(copy));
  },
  interactive: (content, bubble, group, handlers) => {
    bubble.append(renderMarkup(content.body.text));
    const { action } = content;
    if (content.type === "button") {
      group.append(createChoices(...action.buttons.map(({ reply }) => createButton(reply.title, () => handlers.option(reply, "button")))));
    } else if (content.type === "list") {
      const opener = createButton(action.button, () => handlers.list(action, opener));
      opener.classList.add("opens-list");
      opener.setAttribute("aria-haspopup", "dialog");
      group.append(createChoices(opener));
    } else if (content.type === "flow") {
      const { flow_cta: title, flow_token: token } = action.parameters;
      const opener = createButton(title, () => handlers.form(token, opener));
      opener.setAttribute("aria-haspopup", "dialog");
      group.append(createChoices(opener));
    }
  },
};

function renderUnsupported(_, bubble) {
  bubble.append(createElement("p", "text quiet", translate("This message type is not supported here.")));
}

function createChoices(...buttons) {
  return createElement("div", "choices", ...buttons);
}

function createButton(label, onClick) {
  const element = createElement("button", "", label);
  element.type = "button";
  if (onClick) element.addEventListener("click", onClick);
  return element;
}
