import {
  getAuthServerOpenAPI,
  getResourceServerOpenAPI,
  getWalletAddressServerOpenAPI,
} from '@interledger/open-payments'
import { createOpenAPI } from '@interledger/openapi'

export type DocumentName =
  | 'authorization server'
  | 'resource server'
  | 'wallet addresses'
  | 'the library'

/** The relevant part of a schema in a document; references are resolved. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly allOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly string[]
}

interface OperationObject {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly responses: Readonly<Record<string, ResponseObject>>
}

interface ResponseObject {
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: { readonly 'application/json': { readonly schema: Schema } }
}

/** An operation of one of the published documents. */
export interface DocumentedOperation {
  readonly document: DocumentName
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly statuses: readonly number[]
  /** Names of the query parameters. */
  readonly query: readonly string[]
  /** The error codes that a schema lists for a status: none where the schema does not restrict them. */
  codesOf(status: number): readonly string[]
  /** Why a body does not match the document for this status, as the published validator reports it. */
  problemsOf(status: number, body: unknown): readonly string[]
  /** Members of a body that the document does not name, whether or not it forbids them. */
  unnamedIn(status: number, body: unknown): readonly string[]
}

const methods = ['get', 'post', 'put', 'patch', 'delete', 'options', 'head'] as const

/** All operations of the three documents in the published client, in their order. */
export async function documentedOperations(): Promise<readonly DocumentedOperation[]> {
  return [
    ...operationsOf('authorization server', await getAuthServerOpenAPI()),
    ...operationsOf('resource server', await getResourceServerOpenAPI()),
    ...operationsOf('wallet addresses', await getWalletAddressServerOpenAPI()),
  ]
}

/** All operations of the document that the library ships. */
export async function ownOperations(): Promise<readonly DocumentedOperation[]> {
  return operationsOf('the library', await createOpenAPI('openapi.json'))
}

type OpenApi = Awaited<ReturnType<typeof getAuthServerOpenAPI>>

function operationsOf(document: DocumentName, openApi: OpenApi): DocumentedOperation[] {
  return Object.entries(openApi.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method] as OperationObject | undefined
      if (operation === undefined) return []
      const validate = openApi.createResponseValidator({ path, method: method as never })
      return [{ document, path, method: method.toUpperCase(), ...described(operation, validate) }]
    }),
  )
}

function described(
  { operationId, parameters = [], responses }: OperationObject,
  validate: ReturnType<OpenApi['createResponseValidator']>,
) {
  const schemaOf = (status: number) => responses[status]?.content?.['application/json'].schema
  return {
    operationId,
    statuses: Object.keys(responses).map(Number),
    query: parameters.flatMap((each) => (each.in === 'query' ? [each.name] : [])),
    codesOf(status: number) {
      const found = schemaOf(status)
      const parts = found === undefined ? [] : waysOf(found).flat()
      return parts.flatMap((part) => part.properties?.['error']?.properties?.['code']?.enum ?? [])
    },
    problemsOf(status: number, body: unknown) {
      // The documents do not describe errors without a schema; a success without a schema has no content.
      if (status >= 400 && responses[status] !== undefined && schemaOf(status) === undefined)
        return []
      try {
        validate({ status, body: structuredClone(body) })
        return []
      } catch (error) {
        return (error as { errors: { message: string }[] }).errors.map(({ message }) => message)
      }
    },
    unnamedIn(status: number, body: unknown) {
      const found = schemaOf(status)
      return found === undefined ? [] : unnamed([found], body, '')
    },
  }
}

/** Returns a schema with all its parts, once for each alternative. */
function waysOf(schema: Schema): readonly (readonly Schema[])[] {
  const { allOf = [], oneOf = [], anyOf = [] } = schema
  const choices = [oneOf, anyOf].filter((options) => options.length > 0)
  return combined([
    [[schema]],
    ...allOf.map(waysOf),
    ...choices.map((options) => options.flatMap(waysOf)),
  ])
}

/** Returns every combination of one element of each list. */
function combined<Item>(
  choices: readonly (readonly (readonly Item[])[])[],
): readonly (readonly Item[])[] {
  return choices.reduce<readonly (readonly Item[])[]>(
    (all, options) => all.flatMap((begun) => options.map((option) => [...begun, ...option])),
    [[]],
  )
}

/** Uses the alternative of the schemas that leaves the fewest members unnamed. */
function unnamed(schemas: readonly Schema[], value: unknown, path: string): readonly string[] {
  const ways = combined(schemas.map(waysOf)).map((parts) => unnamedBy(parts, value, path))
  return ways.reduce((best, way) => (way.length < best.length ? way : best), ways[0] ?? [])
}

function unnamedBy(parts: readonly Schema[], value: unknown, path: string): readonly string[] {
  if (Array.isArray(value)) {
    const items = parts.flatMap((part) => (part.items === undefined ? [] : [part.items]))
    return value.flatMap((item) => unnamed(items, item, `${path}[]`))
  }
  const named = parts.flatMap((part) => (part.properties === undefined ? [] : [part.properties]))
  // A schema without properties, such as for metadata, allows any member.
  if (typeof value !== 'object' || value === null || named.length === 0) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const where = path === '' ? name : `${path}.${name}`
    const found = named.flatMap((properties) => properties[name] ?? [])
    return found.length === 0 ? [where] : unnamed(found, member, where)
  })
}
