import {
  close,
  common,
  contentFields,
  covering,
  type Dialect,
  line,
  methodAndTarget,
} from './dialect.js'
import { upToDigits, withDigits } from './instants.js'
import { escaping, jsonWriter } from './json.js'
import { formEscaped, percentEncoded } from './queries.js'

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

/** `json.Marshal`, `url.QueryEscape` and the transport of `net/http`, which sorts header fields by name. */
export const go: Dialect = {
  ...common,
  name: 'Go',
  json: jsonWriter({ text: escaping(/[&<>\u2028\u2029]/g), sorted: true }),
  instant: (nanoseconds) => upToDigits(nanoseconds, 9, 'Z'),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.~]/).replaceAll('%20', '+'),
  listParameters: (walletAddress) => [
    ['first', '10'],
    ['wallet-address', walletAddress],
  ],
  lines: ({ method, url, authorization, content, signature }) => [
    ['Host', url.host],
    ['User-Agent', 'Go-http-client/1.1'],
    close,
    ...line('Content-Length', content?.length ?? (method === 'POST' ? '0' : undefined)),
    ...line('Authorization', authorization),
    ...line('Content-Digest', content?.digest),
    ...line('Content-Type', content && 'application/json'),
    ['Signature', signature.value],
    ['Signature-Input', signature.input],
    ['Accept-Encoding', 'gzip'],
  ],
  covers: covering(methodAndTarget, ['authorization'], contentFields),
  parameters: (kid, created) => [`created=${created}`, `keyid="${kid}"`, 'alg="ed25519"'],
}

/**
 * `json_encode` with `JSON_UNESCAPED_SLASHES`, `http_build_query` and Guzzle. Every request has `Content-Type` and
 * `Content-Length`, and `Host` has no port. The signature has no colons.
 */
export const php: Dialect = {
  ...common,
  name: 'PHP',
  json: jsonWriter({
    text: escaping(/[^\0-\x7f]/g),
    number: (value) => String(value).replace(/^(\d)e/, '$1.0e'),
  }),
  instant: (nanoseconds) => withDigits(nanoseconds, 3, 'Z'),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.]/).replaceAll('%20', '+'),
  continueAt: (uri) => `${uri}/`,
  lines: ({ url, authorization, content, signature }) => [
    ['User-Agent', 'OP-PHP-SDK-Client'],
    ['Accept', 'application/json'],
    close,
    ['Content-Type', 'application/json'],
    ['Content-Length', content?.length ?? '0'],
    ...line('Authorization', authorization),
    ['Host', url.hostname],
    ...line('Content-Digest', content?.digest),
    ['Signature', signature.value],
    ['Signature-Input', signature.input],
  ],
  covers: covering(methodAndTarget, ['authorization'], contentFields),
  parameters: (kid, created) => [`keyid="${kid}"`, `created=${created}`],
  signatureForm: 'php',
}

/** httpx and pydantic. A member without a value is `null`, and a list names its parameter `walletAddress`. */
export const python: Dialect = {
  ...common,
  name: 'Python',
  json: jsonWriter({ absent: 'null' }),
  instant: (nanoseconds) => withDigits(nanoseconds, 6, '+00:00'),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.~]/).replaceAll('%20', '+'),
  listParameters: (walletAddress) => [
    ['walletAddress', walletAddress],
    ['cursor', ''],
    ['first', '10'],
    ['last', ''],
  ],
  lines: ({ method, url, authorization, content, signature }) => [
    ['Host', url.host],
    ['Accept', '*/*'],
    ['Accept-Encoding', 'gzip, deflate'],
    close,
    ['User-Agent', 'python-httpx/0.28.1'],
    ...line('Content-Type', content && 'application/json'),
    ...line('Authorization', authorization),
    ...line('Content-Length', content?.length ?? (method === 'POST' ? '0' : undefined)),
    ...line('Content-Digest', content?.digest),
    ['Signature-Input', signature.input],
    ['Signature', signature.value],
  ],
  covers: ({ authorization, content }) => [
    ...(content === undefined ? [] : ['content-type', 'content-digest', 'content-length']),
    ...(authorization === undefined ? [] : ['authorization']),
    ...methodAndTarget,
  ],
  parameters: (kid, created) => [`created=${created}`, `keyid="${kid}"`, 'alg="ed25519"'],
}

/** Newtonsoft.Json and `HttpClient`. A `POST` without content has a type with a charset. */
export const dotnet: Dialect = {
  ...common,
  name: '.NET',
  json: jsonWriter({
    text: escaping(/[\u0085\u2028\u2029]/g),
    number: (value) => String(value).replace('e', 'E'),
  }),
  instant: (nanoseconds) => upToDigits(nanoseconds, 7, '+00:00'),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.~]/),
  readAt: (url) => `${url}/`,
  lines: ({ method, url, authorization, content, signature }) => [
    ['Host', url.host],
    close,
    ['Accept', 'application/json'],
    ...line('Authorization', authorization),
    ['Signature', signature.value],
    ['Signature-Input', signature.input],
    ...(content === undefined && method !== 'POST'
      ? []
      : line('Content-Type', content ? 'application/json' : 'application/json; charset=utf-8')),
    ...line('Content-Digest', content?.digest),
    ...line('Content-Length', content?.length ?? (method === 'POST' ? '0' : undefined)),
  ],
  covers: covering(methodAndTarget, ['authorization'], contentFields),
  parameters: (kid, created) => [`created=${created}`, `keyid="${kid}"`, 'alg="ed25519"'],
}

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

/** The clients that are published. */
export const published: readonly Dialect[] = [typescript, go, php, python, dotnet, rust]

export const dialects: readonly Dialect[] = [...published, unusual]
