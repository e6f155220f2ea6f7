// NTAG 424 DNA chip in software: signs every tap (Secure Unique NFC), with WebCrypto alone.
// docs/cards.md describes the keys. NXP AN12196 describes the computation.

const BLOCK_BYTES = 16;
const ZERO_BLOCK = new Uint8Array(BLOCK_BYTES);
const PICC_DATA_TAG = 0xc7; // UID of 7 bytes and counter
const PADDING_BYTES = 5;
const SESSION_LABEL = fromHex("3CC300010080");

/** Returns the bytes of hex digits. */
export function fromHex(digits) {
  return Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
}

export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("").toUpperCase();
}

/** AES-128 in CBC mode with a zero IV, for complete blocks. The padding of WebCrypto is cut off. */
async function encrypt(keyBytes, data) {
  const key = await crypto.subtle.importKey("raw", keyBytes, "AES-CBC", false, ["encrypt"]);
  const encrypted = await crypto.subtle.encrypt({ name: "AES-CBC", iv: ZERO_BLOCK }, key, data);
  return new Uint8Array(encrypted, 0, data.length);
}

/** Multiplies by x in the field of the CMAC subkeys. */
function double(block) {
  const shifted = block.map((byte, index) => (byte << 1) | (index + 1 < BLOCK_BYTES ? block[index + 1] >> 7 : 0));
  if (block[0] & 0x80) shifted[BLOCK_BYTES - 1] ^= 0x87;
  return shifted;
}

/** AES-CMAC (RFC 4493), which WebCrypto does not provide. */
export async function computeCmac(keyBytes, message) {
  const blocks = Math.max(1, Math.ceil(message.length / BLOCK_BYTES));
  const padded = new Uint8Array(blocks * BLOCK_BYTES);
  padded.set(message);
  let subkey = double(await encrypt(keyBytes, ZERO_BLOCK));
  if (message.length < padded.length) {
    padded[message.length] = 0x80;
    subkey = double(subkey);
  }
  const last = padded.length - BLOCK_BYTES;
  subkey.forEach((byte, index) => { padded[last + index] ^= byte; });
  return (await encrypt(keyBytes, padded)).slice(last);
}

/** Chip with the keys and the counter of `{uid, meta_read_key, file_read_key, counter}`, in hex. */
export function createChip(record) {
  const [uid, metaReadKey, fileReadKey] = [record.uid, record.meta_read_key, record.file_read_key].map(fromHex);
  let counter = record.counter;

  /** Raises the counter and returns the proof. */
  async function tap() {
    counter += 1;
    const tapped = [...uid, counter & 0xff, (counter >> 8) & 0xff, counter >> 16];
    const padding = crypto.getRandomValues(new Uint8Array(PADDING_BYTES));
    const piccData = await encrypt(metaReadKey, Uint8Array.of(PICC_DATA_TAG, ...tapped, ...padding));
    const sessionKey = await computeCmac(fileReadKey, Uint8Array.of(...SESSION_LABEL, ...tapped));
    const mac = await computeCmac(sessionKey, new Uint8Array());
    return { picc_data: toHex(piccData), cmac: toHex(mac.filter((_, index) => index % 2)) };
  }

  return { tap, get counter() { return counter; } };
}
