import { close, common, contentFields, type Dialect, line, methodAndTarget } from './dialect.js'
import { withDigits } from './instants.js'
import { percentEncoded } from './queries.js'

/**
 * Not a published client: it uses every freedom of the specifications that the published clients do not use.
 */
export const unusual: Dialect = {
  ...common,
  name: 'an unusual client',
  json: (value) => JSON.stringify(value, undefined, '\t'),
  instant: (nanoseconds) => withDigits(nanoseconds, 1, '-00:00'),
  query: (value) =>
    percentEncoded(value, /[A-Za-z0-9\-_.~]/).replace(/%../g, (byte) => byte.toLowerCase()),
  lines: ({ url, authorization, content, signature }) => [
    ['SIGNATURE-INPUT', signature.input],
    ['SIGNATURE', signature.value],
    ...line('CONTENT-TYPE', content && 'application/json;charset="UTF-8"'),
    ...line('CONTENT-DIGEST', content?.digest),
    ...line('CONTENT-LENGTH', content?.length),
    ...line('AUTHORIZATION', authorization),
    close,
    ['HOST', url.host],
  ],
  covers: ({ authorization, content }) => [
    ...methodAndTarget.toReversed(),
    ...(authorization === undefined ? [] : ['authorization']),
    ...(content === undefined ? [] : contentFields.toReversed()),
  ],
  parameters: (kid, created) => [
    'tag="gnap"',
    `expires=${created + 60}`,
    'alg="ed25519"',
    `created=${created}`,
    `keyid="${kid}"`,
  ],
  label: 'the-client.s_own*label',
}
