/**
 * Reads a stream of the Fetch API. Resolves to its bytes. If there are more than `bytesMax`, cancels the rest, and
 * resolves to more than `bytesMax` bytes, so that the length says that the limit was exceeded.
 */
export async function readBounded(
  stream: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<Uint8Array> {
  if (stream === null) return new Uint8Array()
  const reader = stream.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  while (length <= bytesMax) {
    const { done, value } = await reader.read()
    if (done) break
    chunks.push(value)
    length += value.length
  }
  if (length > bytesMax) await reader.cancel()
  return concatenate(chunks, length)
}

function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const [only, ...others] = chunks
  if (only !== undefined && others.length === 0) return only
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}
