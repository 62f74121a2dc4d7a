import type { Json, JsonObject } from '../core/json.js'
import { ok } from '../core/result.js'
import { encodeUtf8 } from '../util/bytes.js'
import { isObject, isStorable } from './json.js'
import type { Parsed } from './schema.js'

const bytesMax = 8 * 1024
const levelsMax = 8

/**
 * Reads the `metadata` of a request body: an object of at most 8 KiB and 8 levels. Returns the parsed object itself,
 * because responses repeat it unchanged and a schema would copy it.
 */
export function readMetadata(body: Json | undefined): Parsed<{ readonly metadata?: JsonObject }> {
  const metadata = isObject(body) ? body['metadata'] : undefined
  if (metadata === undefined || metadata === null) return ok({})
  const path = 'metadata'
  if (!isObject(metadata)) return { ok: false, path, problem: 'has the wrong type' }
  if (!isStorable(metadata, levelsMax)) {
    return { ok: false, path, problem: `must not be nested more than ${levelsMax} levels deep` }
  }
  return encodeUtf8(JSON.stringify(metadata)).length > bytesMax
    ? { ok: false, path, problem: `must not be larger than ${bytesMax} bytes` }
    : ok({ metadata })
}
