import {
  type AuthenticatedClient,
  type Grant,
  isFinalizedGrantWithAccessToken,
  isFinalizedGrantWithSubject,
  isPendingGrant,
  type PendingGrant,
} from '@interledger/open-payments'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../examples/demo/browser.js'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import {
  clientOf,
  deployments,
  failure,
  type RunningDeployment,
  startDeployment,
} from '../support/official-client.js'

let shop: Shop
let client: AuthenticatedClient

beforeAll(async () => {
  shop = await openShop()
  client = await clientOf(shop)
})
afterAll(() => shop.stop())

describe.each(deployments)('the published client requests the subject from $name', (deployment) => {
  let running: RunningDeployment
  beforeAll(async () => {
    running = await startDeployment(deployment)
  })
  afterAll(() => running.stop())

  const request = (more: object) => client.grant.request({ url: running.auth }, more as never)
  const subjectOf = (id: string) => ({ sub_ids: [{ id, format: 'uri' as const }] })
  const subject = () => subjectOf(running.bob)
  const access = () => [{ type: 'outgoing-payment', actions: ['create'], identifier: running.bob }]
  const interact = () => ({
    start: ['redirect'],
    finish: { method: 'redirect', uri: shop.finishUri, nonce: 'a-nonce' },
  })

  /** Returns what the owner reads, and what the client receives after approval. */
  async function approved(grant: Grant | PendingGrant) {
    if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
    const { page, location } = await decide(grant.interact.redirect, 'approve')
    const { uri: url, access_token } = grant.continue
    const continuation = { url, accessToken: access_token.value }
    const interact_ref = location?.searchParams.get('interact_ref') ?? ''
    const answer = (await client.grant.continue(continuation, { interact_ref })) as Grant
    return { page, continuation, answer }
  }

  test('alone: it gets the subject and no token', async () => {
    const grant = await request({ subject: subject(), interact: interact() })
    const { page, continuation, answer } = await approved(grant)
    expect(page).toContain(`know that you are ${running.bob}`)
    expect(isFinalizedGrantWithSubject(answer) && answer.subject).toEqual(subject())
    expect(isFinalizedGrantWithAccessToken(answer)).toBe(false)
    expect(await client.grant.cancel(continuation)).toBeUndefined()
  })

  test('with access: it gets both', async () => {
    const access_token = { access: access() }
    const { answer } = await approved(
      await request({ access_token, subject: subject(), interact: interact() }),
    )
    expect(isFinalizedGrantWithSubject(answer) && answer.subject).toEqual(subject())
    expect(isFinalizedGrantWithAccessToken(answer) && answer.access_token?.access).toEqual(access())
  })

  test('of another owner: the request cannot be approved', async () => {
    const asked = subjectOf('https://other.example/alice')
    const grant = await request({ subject: asked, interact: interact() })
    if (!isPendingGrant(grant)) throw new Error('the grant is not pending')
    const { location } = await decide(grant.interact.redirect, 'approve')
    expect(location).toBeUndefined()
  })

  test('without an interaction: it is told that one is required', async () => {
    const call = request({ access_token: { access: access() }, subject: subject() })
    expect(await failure(call)).toMatchObject({ status: 400, code: 'invalid_request' })
  })
})
