import type { Aside, Form } from './asides.js'
import { begin, cancel, fail, reportSent } from './compared/host.js'
import { expected, quote, send } from './compared/pay.js'
import { type Comparison, clientOf, type Sent } from './compared/state.js'
import type { Asked } from './played-wallet.js'
import { eur, euroReceiver, usd } from './spending.js'
import type { Line } from './spending-book.js'
import { alice, bob } from './world.js'

type Of<Type extends Aside['do']> = Extract<Aside, { readonly do: Type }>

const most = 2n ** 64n - 1n
const least = (value: bigint, other: bigint) => (value < other ? value : other)
const which = <T>(list: readonly T[], n: number): T | undefined => list[n % (list.length || 1)]
const share = (whole: bigint, percent: number) => least((whole * BigInt(percent)) / 100n, most)

/** Sends an aside to a wallet. It may move money of Bob, and never money of Alice, whom the histories are about. */
export async function takeAside(state: Comparison, aside: Aside): Promise<void> {
  const { grants, quotes } = state
  switch (aside.do) {
    case 'quote': {
      const grant = aside.grant % grants.length
      return void (await quote(state, grant, askedFor(state, aside, aside.form)))
    }
    case 'pay':
    case 'pay with a key':
      return payAside(state, aside)
    case 'pay by a quote': {
      const place = quotes.length - 1 - (aside.quote % (quotes.length || 1))
      const asker = aside.by === 'the requester' ? quotes[place]?.grant : undefined
      const grant = asker ?? aside.grant % grants.length
      return payByQuote(state, { ...aside, quote: place, grant })
    }
    case 'repeat':
      return repeat(state, aside)
    default:
      return reportAside(state, aside)
  }
}

export function isOfBob({ grants }: Comparison, { place: { grant, item } }: Line): boolean {
  return grants[grant]?.[item]?.walletAddress === bob
}

export async function payByQuote(
  state: Comparison,
  { quote, grant, note, from }: Pick<Of<'pay by a quote'>, 'quote' | 'grant' | 'note' | 'from'>,
): Promise<void> {
  const found = state.quotes[quote]
  const account = found?.walletAddress ?? bob
  const other = account === alice ? bob : alice
  const request = {
    walletAddress: from === undefined ? account : other,
    quoteId: found?.id ?? 'unknown',
    ...(note && { metadata: { note } }),
  }
  await sendAside(state, 'pay by a quote', grant, { client: clientOf(state, grant), request })
}

/** Sends the request unless it would move money of Alice. */
async function sendAside(
  state: Comparison,
  what: string,
  grant: number,
  asked: Sent,
): Promise<void> {
  const expectation = expected(state, grant, asked)
  const charges = expectation.ok && !expectation.value.repeats
  if (charges && asked.request.walletAddress !== bob) return
  await send(state, what, grant, asked)
}

/** The amount of an aside, in the asset of the form. */
function askedFor(
  { book, grants, wallet }: Comparison,
  aside: Of<'quote' | 'pay' | 'pay with a key'>,
  form: Form,
): Asked {
  const grant = aside.grant % grants.length
  const walletAddress = aside.account === 'alice' ? alice : bob
  const item = grants[grant]?.findIndex((plan) => plan.walletAddress === walletAddress) ?? -1
  const { limit } = grants[grant]?.[item] ?? {}
  const { of, percent, offset } = aside.part
  const room = () => book.room(grant, item, wallet.clock.now())
  const whole = of === 'limit' ? (limit?.value ?? 1_000n) : room()
  const part = (whole * BigInt(percent)) / 100n + BigInt(offset)
  const [amount, per] = aside.to === euroReceiver ? [eur, 2n] : [usd, 1n]
  const factor = limit?.counts === 'receiveAmount' && form === 'debit' ? per : 1n
  const value = least(part < 0n ? 0n : part * factor, form === 'receive' ? most / per : most)
  const asked = { walletAddress, receiver: aside.to }
  if (form === 'neither') return asked
  return form === 'debit'
    ? { ...asked, debitAmount: usd(value) }
    : { ...asked, receiveAmount: amount(value) }
}

async function payAside(state: Comparison, aside: Of<'pay' | 'pay with a key'>): Promise<void> {
  const grant = aside.grant % state.grants.length
  const { walletAddress, receiver, debitAmount = usd(0) } = askedFor(state, aside, 'debit')
  const request = { walletAddress, incomingPayment: receiver, debitAmount }
  const key = aside.do === 'pay' ? {} : { key: `key-${aside.key}` }
  await sendAside(state, aside.do, grant, { client: clientOf(state, grant), request, ...key })
}

/** Repeats a request of the same client instance, perhaps with another of its tokens. */
async function repeat(state: Comparison, aside: Of<'repeat'>): Promise<void> {
  const again = which(state.sent, aside.request)
  const theirs = [...state.grants.keys()].filter((grant) => {
    return clientOf(state, grant) === again?.client
  })
  const grant = which(theirs, aside.grant)
  if (again !== undefined && grant !== undefined) await sendAside(state, 'repeat', grant, again)
}

async function reportAside(
  state: Comparison,
  aside: Of<'begin' | 'cancel' | 'report-sent' | 'fail'>,
): Promise<void> {
  const { book } = state
  const all = book.lines.filter((line) => isOfBob(state, line))
  const begun = all.filter((line) => line.state === 'begun')
  const line = which(aside.payment % 2 === 0 && begun.length > 0 ? begun : all, aside.payment)
  if (line === undefined || book.find(line.id) !== line) return
  switch (aside.do) {
    case 'begin':
      return void (await begin(state, line))
    case 'cancel':
      return void (await cancel(state, line))
    case 'fail': {
      const sent = aside.sent === undefined ? line.sent : share(line.debit, aside.sent)
      return void (await fail(state, line, { sent, delivered: line.delivered }))
    }
    case 'report-sent': {
      const sums = {
        sent: share(line.debit, aside.sent),
        delivered: share(line.receive, aside.delivered),
      }
      return void (await reportSent(state, line, sums, aside.final))
    }
  }
}
