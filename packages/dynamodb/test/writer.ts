import { dynamodbStore } from 'open-payments-server-dynamodb'
import { clientOf } from './dynamodb-local.js'

// Replaces all records together, version after version, and reports each commit that was confirmed.
const [address = '', table = '', prefix = '', count = ''] = process.argv.slice(2)
const store = dynamodbStore(clientOf(address), { table })
const ids = Array.from({ length: Number(count) }, (_, i) => `${prefix}${i}`)
for (let version = 1; ; version++) {
  const changes = ids.map((id) => {
    const lists = [{ list: prefix, at: version }]
    const next = { id, version, commandId: `${id} ${version}`, lists }
    const previous = { lists: [{ list: prefix, at: version - 1 }] }
    return {
      kind: 'grant' as const,
      next,
      expectedVersion: version - 1,
      ...(version > 1 && { previous }),
    }
  })
  if (!(await store.commit({ changes, guards: [] }))) throw new Error('the commit lost')
  process.send?.(version)
}
