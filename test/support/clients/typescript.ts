import {
  close,
  common,
  contentFields,
  covering,
  type Dialect,
  line,
  methodAndTarget,
} from './dialect.js'
import { withDigits } from './instants.js'
import { formEscaped } from './queries.js'

/** `@interledger/open-payments` 7 on Node.js. It sends a `Content-Type` with every request. */
export const typescript: Dialect = {
  ...common,
  name: 'TypeScript',
  json: JSON.stringify,
  instant: (nanoseconds) => withDigits(nanoseconds, 3, 'Z'),
  query: formEscaped,
  lines: ({ method, url, authorization, content, signature }) => [
    ['host', url.host],
    close,
    ['accept', 'application/json'],
    ...line('authorization', authorization),
    [content === undefined ? 'content-type' : 'Content-Type', 'application/json'],
    ...line('Content-Digest', content?.digest),
    ['Signature', signature.value],
    ['Signature-Input', signature.input],
    ['accept-language', '*'],
    ['sec-fetch-mode', 'cors'],
    ['user-agent', 'node'],
    ['accept-encoding', 'gzip, deflate'],
    ...line('content-length', content?.length ?? (method === 'POST' ? '0' : undefined)),
  ],
  covers: covering(methodAndTarget, ['authorization'], contentFields),
  parameters: (kid, created) => [`keyid="${kid}"`, `created=${created}`],
}
