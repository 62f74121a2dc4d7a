import type { ListQuery, RecordPage, Stored } from '../../src/index.js'
import { recordIn } from './record-text.js'

/** A row of a result. Which columns it has depends on the statement. */
export interface Row {
  readonly value?: unknown
}

export function recordOf({ value }: Row): Stored {
  return recordIn(String(value))
}

/** Returns the page of a query whose statement asked for one row more than the limit. */
export function pageOf({ forward, limit }: ListQuery, rows: readonly Row[]): RecordPage {
  const records = rows.slice(0, limit).map(recordOf)
  return { records: forward ? records : records.reverse(), more: rows.length > limit }
}
