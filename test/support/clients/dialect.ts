import type { Sdk } from '../sdk-signatures.js'

export type HeaderLine = readonly [name: string, value: string]
export type QueryParameter = readonly [name: string, value: string]

/** A request as the author of an SDK sees it when the SDK writes the header lines. */
export interface Message {
  readonly method: string
  readonly url: URL
  /** The value of the `Authorization` field. */
  readonly authorization?: string
  /** Absent for a request without content. */
  readonly content?: { readonly length: string; readonly digest: string }
  /** The values of the two signature fields. */
  readonly signature: { readonly input: string; readonly value: string }
}

/**
 * How one client writes its requests. The facts come from the published client (TypeScript) and from the
 * sources of the SDKs, except for `Connection`: the tests open a connection for each request.
 */
export interface Dialect {
  readonly name: string
  /** JSON text as its encoder writes it. `undefined` stands for an optional member without a value. */
  readonly json: (value: unknown) => string
  /** An instant, from nanoseconds since 1970. */
  readonly instant: (nanoseconds: bigint) => string
  /** The escaped form of a value in a query. */
  readonly query: (value: string) => string
  /** The parameters of a list request, in its order. */
  readonly listParameters: (walletAddress: string) => readonly QueryParameter[]
  /** The URL for a continuation, and the URL for reading a resource. */
  readonly continueAt: (uri: string) => string
  readonly readAt: (url: string) => string
  /** All header lines, in its order and case. */
  readonly lines: (message: Message) => readonly HeaderLine[]
  /** The names of the components that it covers, in its order. */
  readonly covers: (message: Message) => readonly string[]
  readonly parameters: (kid: string, created: number) => readonly string[]
  readonly label: string
  /** How it writes the two signature fields. */
  readonly signatureForm: 'standard' | Sdk
}

/** The properties that most clients share. */
export const common = {
  listParameters: (walletAddress: string): readonly QueryParameter[] => [
    ['wallet-address', walletAddress],
  ],
  continueAt: (uri: string) => uri,
  readAt: (url: string) => url,
  label: 'sig1',
  signatureForm: 'standard',
} as const

/** A header line, unless it has no value. */
export function line(name: string, value: string | undefined): HeaderLine[] {
  return value === undefined ? [] : [[name, value]]
}

/** Every request has its own connection, so that a test can read a response to its end. */
export const close: HeaderLine = ['Connection', 'close']

/** Which names to cover: always, with a token, and with content. */
export function covering(
  always: readonly string[],
  withToken: readonly string[],
  withContent: readonly string[],
): Dialect['covers'] {
  return ({ authorization, content }) => [
    ...always,
    ...(authorization === undefined ? [] : withToken),
    ...(content === undefined ? [] : withContent),
  ]
}

export const methodAndTarget = ['@method', '@target-uri']
export const contentFields = ['content-digest', 'content-length', 'content-type']
