import { close, common, covering, type Dialect, line, methodAndTarget } from './dialect.js'
import { withDigits } from './instants.js'
import { jsonWriter } from './json.js'
import { formEscaped } from './queries.js'

/**
 * serde_json, chrono and reqwest, which writes field names in lower case. Every request has a `Content-Type` and
 * covers it. The covered components are tokens, and the signature is base64 alone.
 */
export const rust: Dialect = {
  ...common,
  name: 'Rust',
  json: jsonWriter({ number: (value) => String(value).replace('e+', 'e') }),
  instant: (nanoseconds) => withDigits(nanoseconds, 9, 'Z'),
  query: formEscaped,
  lines: ({ url, authorization, content, signature }) => [
    ['content-type', 'application/json'],
    ...line('authorization', authorization),
    ...line('content-length', content?.length),
    ...line('content-digest', content?.digest),
    ['signature', signature.value],
    ['signature-input', signature.input],
    ['accept', '*/*'],
    close,
    ['host', url.host],
  ],
  covers: covering(
    [...methodAndTarget, 'content-type'],
    ['authorization'],
    ['content-digest', 'content-length'],
  ),
  parameters: (kid, created) => [`created=${created}`, `keyid="${kid}"`],
  signatureForm: 'rust',
}
