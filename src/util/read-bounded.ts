import { concatenate } from './bytes.js'

/**
 * Reads the body of a response of the Fetch API. Resolves to its bytes. If there are more than `bytesMax`, cancels the
 * rest, and resolves to more than `bytesMax` bytes, so that the length says that the limit was exceeded.
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
