import { type DocumentFetch, FetchRefusedError } from 'open-payments-server'

const bytesMax = 65_536

/** Fetches a URL that a client chose. */
export const fetchKeys: DocumentFetch = async (url, { signal }) => {
  if (url.protocol !== 'https:') throw new FetchRefusedError('the URL must use https')
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'manual', // a redirect is an answer, which withdraws no key
    signal,
  })
  const chunks: BlobPart[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > bytesMax) throw new FetchRefusedError('the response is too long')
    chunks.push(chunk)
  }
  const body = new Uint8Array(await new Blob(chunks).arrayBuffer())
  const contentType = response.headers.get('content-type') ?? ''
  return { status: response.status, contentType, body }
}
