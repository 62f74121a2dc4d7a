import { endedGrant } from '../../core/grant/ended.js'
import type { Grant } from '../../core/grant/record.js'
import { newCall, type ServiceContext } from '../context.js'
import { ifRetired, type SweptKind } from '../sweep.js'
import { creationWrite } from '../write/write.js'
import { ownerListName } from './lists.js'

/**
 * Sweeps grants. What remains of a grant is written before the grant is removed, so that a call that reads the grants
 * of an owner first, and what remains of others second, returns all of them.
 */
export function sweptGrants(context: ServiceContext, historyMs: number): SweptKind {
  return {
    kind: 'grant',
    async sweep(record, now) {
      const grant = record as Grant
      const swept = ifRetired(grant, now)
      if (swept === undefined || grant.consent === undefined) return swept
      const { commandId } = newCall(context)
      const listName = await ownerListName(await context.namespace(), grant.consent.resourceOwner)
      const ended = endedGrant(grant, { commandId, listName, historyMs }, now)
      if (ended === undefined) return swept
      const created = { record: ended, events: [] }
      return context.run({
        ...creationWrite('ended-grant', created, swept),
        together: 'ended grants',
      })
    },
  }
}
