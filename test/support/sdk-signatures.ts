import { sign } from 'node:crypto'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { headerOf, type SignOptions, signedRequest, withHeader } from './sign.js'

/** A client SDK whose signature fields are not Structured Fields. */
export type Sdk = 'php' | 'rust'

export const sdks: readonly Sdk[] = ['php', 'rust']

/** What an SDK signs: the request before it has signature fields. */
export interface SdkMessage {
  readonly method: string
  /** The absolute URL. */
  readonly url: string
  /** Header lines; the SDK signs those that it covers. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Seconds since 1970. */
  readonly created: number
  /** Names of the covered components. Default: those that the SDK covers, in its order. */
  readonly components?: readonly string[]
  /** Overrides the value of a component in the signature base. */
  readonly override?: Readonly<Record<string, string>>
}

/** Returns the two signature fields by name. */
export interface SdkSignature {
  readonly 'Signature-Input': string
  readonly Signature: string
}

/**
 * Signs a message as the PHP or the Rust SDK does. PHP quotes the components, writes `keyid` first and omits
 * the colons of the signature. Rust omits the quotes in the list, but not in the lines of the signature base,
 * and writes the signature without label and colons.
 */
export function sdkSignature(
  sdk: Sdk,
  { method, url, headers, created, ...rest }: SdkMessage,
  key: SignOptions['key'],
): SdkSignature {
  const values = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]))
  values.set('@method', method).set('@target-uri', url)
  const hasContent = values.has('content-digest')
  const components =
    rest.components ??
    coveredBy[sdk].filter(
      (name) => values.has(name) && (hasContent || !ofContent[sdk].includes(name)),
    )
  const list = components.map((name) => (sdk === 'php' ? `"${name}"` : name)).join(' ')
  const parameters =
    sdk === 'php'
      ? `keyid="${key.kid}";created=${created}`
      : `created=${created};keyid="${key.kid}"`
  const lines = components.map(
    (name) => `"${name}": ${rest.override?.[name] ?? values.get(name) ?? ''}\n`,
  )
  const base = `${lines.join('')}"@signature-params": (${list});${parameters}`
  const base64 = sign(null, Buffer.from(base, 'latin1'), key.privateKey).toString('base64')
  return {
    'Signature-Input': `sig1=(${list});${parameters}`,
    Signature: sdk === 'php' ? `sig1=${base64}` : base64,
  }
}

const coveredBy: Readonly<Record<Sdk, readonly string[]>> = {
  php: [
    '@method',
    '@target-uri',
    'authorization',
    'content-digest',
    'content-length',
    'content-type',
  ],
  rust: [
    '@method',
    '@target-uri',
    'content-type',
    'authorization',
    'content-digest',
    'content-length',
  ],
}

/** The components that an SDK covers only for a request with content. */
const ofContent: Readonly<Record<Sdk, readonly string[]>> = {
  php: ['content-length', 'content-type'],
  rust: ['content-length'],
}

/** Builds a request with the signature of an SDK, without a nonce because neither SDK sends one. */
export function sdkSignedRequest(sdk: Sdk, options: SignOptions): HttpRequest {
  const { method, url, key, created, components, override = {} } = options
  const request = signedRequest(options)
  const typed = headerOf(request, 'content-type') !== undefined
  // The Rust SDK sends a content type with every request, even without content.
  const unsigned =
    sdk === 'rust' && !typed ? withHeader(request, 'Content-Type', 'application/json') : request
  const names = components?.map((component) => component.replaceAll('"', ''))
  const overridden = Object.entries(override).map(([name, value]) => [
    name.replaceAll('"', ''),
    value,
  ])
  const fields = sdkSignature(
    sdk,
    {
      method,
      url,
      headers: unsigned.headers,
      created,
      override: Object.fromEntries(overridden),
      ...(names === undefined ? {} : { components: names }),
    },
    key,
  )
  return Object.entries(fields).reduce(
    (signed, [name, value]) => withHeader(signed, name, value),
    unsigned,
  )
}

/** How a request can be signed: by RFC 9421, or as an SDK does. */
export type SignatureForm = 'standard' | Sdk

export const signatureForms: readonly SignatureForm[] = ['standard', ...sdks]

/** Builds a request signed in one of the forms. Only the standard form has a nonce. */
export function signedIn(form: SignatureForm, options: SignOptions): HttpRequest {
  return form === 'standard' ? signedRequest(options) : sdkSignedRequest(form, options)
}
