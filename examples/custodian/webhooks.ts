import { timingSafeEqual } from 'node:crypto'
import type { Settlements } from './settlements.js'

/** What the custodian tells, again and again until the answer is 2xx. It is a hint: the wallet asks, or counts once. */
export type Notice =
  | { readonly type: 'hold'; readonly key: string }
  | {
      readonly type: 'arrival'
      readonly transferId: string
      readonly payment: string
      readonly value: string
    }

/** Returns the endpoint that the custodian calls. */
export function webhooks({ arrived, pay }: Pick<Settlements, 'arrived' | 'pay'>, secret: string) {
  const expected = Buffer.from(`Bearer ${secret}`)
  return async (request: Request): Promise<Response> => {
    const given = Buffer.from(request.headers.get('authorization') ?? '')
    const isCustodian = given.length === expected.length && timingSafeEqual(given, expected)
    if (!isCustodian) return new Response(null, { status: 401 })
    const notice = (await request.json()) as Notice
    if (notice.type === 'hold') {
      await pay(notice.key) // does not wait for the event, which finds it done
      return new Response(null, { status: 204 })
    }
    const postponed = await arrived(notice.transferId, notice.payment, notice.value)
    return new Response(null, { status: postponed === undefined ? 204 : 503 })
  }
}
