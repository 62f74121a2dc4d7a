import type { RecordKind } from 'open-payments-server/adapter'
import type { OneRecordStore } from './one-record.js'

/** Applies a fault to the records of one kind, as if only the table of that kind had it. */
export function plantedIn(kind: RecordKind, breaks: (store: OneRecordStore) => OneRecordStore) {
  return (store: OneRecordStore): OneRecordStore => {
    const broken = breaks(store)
    const of = (asked: RecordKind) => (asked === kind ? broken : store)
    return {
      load: (asked, id) => of(asked).load(asked, id),
      list: (query) => of(query.kind).list(query),
      due: (asked, ...query) => of(asked).due(asked, ...query),
      remove: (asked, id, version) => of(asked).remove(asked, id, version),
      commit(commit) {
        const named = [...commit.changes, ...commit.guards]
        return (named.some((each) => each.kind === kind) ? broken : store).commit(commit)
      },
    }
  }
}
