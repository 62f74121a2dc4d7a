import { type Accounts, type Arrival, arrivals, type Payout } from './accounts.js'

/** What a request may contain. The stand-in trusts its caller. */
interface Body extends Payout, Arrival {
  readonly account: string
  readonly value: string
  readonly notAfter: number
}

/** The API of a custodian: `undefined` for what it does not serve. */
export function custodianApi(accounts: Accounts, now: () => number) {
  return async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url)
    const [, resource, encoded = ''] = pathname.split('/')
    const key = decodeURIComponent(encoded)
    const answered = (state: string) => Response.json({ state })
    const body = request.method === 'GET' ? ({} as Body) : ((await request.json()) as Body)
    switch (`${request.method} ${resource}`) {
      case 'PUT holds':
        return answered(accounts.hold(key, body.account, body.value, now()))
      case 'DELETE holds':
        return answered(accounts.release(key))
      case 'PUT credits':
        return answered(accounts.credit(key, body.account, body.value))
      case 'POST payouts': {
        const { notAfter, ...payout } = body
        return answered(accounts.pay(payout, notAfter, now()))
      }
      case 'GET payouts':
        return Response.json({ payouts: accounts.find(searchParams.get('memo') ?? '') })
      // What is not the wallet's: money that comes in, and the books.
      case 'POST accounts':
        accounts.open(body.account, BigInt(body.value))
        return answered('done')
      case 'POST arrivals':
        accounts.arrive(body)
        return answered('done')
      case 'GET books':
        return Response.json({ ...accounts.books(), arrivals })
      default:
        return Response.json({ error: 'unknown' }, { status: 404 })
    }
  }
}
