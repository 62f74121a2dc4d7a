import type { JsonObject } from '../core/stored.js'
import { readHostObject } from '../protocol/schema.js'
import { InvalidInputError } from '../util/invalid-input.js'

/**
 * Returns a copy of an object of the host that becomes part of a record, under its name.
 *
 * @param path the path of the object, such as `request.data`.
 * @throws {InvalidInputError} for what JSON cannot express, and for more than 8 KiB or 8 levels.
 */
export function readObject<Name extends string>(
  path: string,
  name: Name,
  value: unknown,
): { readonly [Each in Name]?: JsonObject } {
  if (value === undefined) return {}
  const read = readHostObject(value)
  if (!read.ok) throw new InvalidInputError(`${path}.${name}`, read.problem)
  return { [name]: read.value } as { readonly [Each in Name]: JsonObject }
}
