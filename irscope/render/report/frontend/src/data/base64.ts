interface Decoder {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

/** The bytes that a base64 text stands for. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as Decoder).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
