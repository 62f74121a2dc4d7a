// #region lambda
import { createWallet } from './wallet.js'

const { handle } = createWallet(process.env['ORIGIN'] ?? 'https://wallet.example')

/** Serves HTTP APIs of API Gateway, and function URLs: events in format 2.0. */
export async function handler(event: LambdaEvent) {
  const { rawPath, rawQueryString, headers, body = '', isBase64Encoded } = event
  const answer = await handle({
    method: event.requestContext.http.method,
    url: rawQueryString === '' ? rawPath : `${rawPath}?${rawQueryString}`,
    headers: Object.entries(headers),
    headersMerged: true,
    body: Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8'),
  })
  return { statusCode: answer.status, headers: answer.headers, body: answer.body ?? '' }
}

/** What the handler reads of an event. */
export interface LambdaEvent {
  readonly rawPath: string
  readonly rawQueryString: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly isBase64Encoded: boolean
  readonly requestContext: { readonly http: { readonly method: string } }
}
// #endregion lambda
