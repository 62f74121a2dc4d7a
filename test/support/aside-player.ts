import type { Aside, Form } from './asides.js'
import type { ComparedWallet, Sent } from './compared-wallet.js'
import type { Asked } from './played-wallet.js'
import { eur, euroReceiver, usd } from './spending.js'
import type { Line } from './spending-book.js'
import { alice, bob } from './world.js'

type Of<Type extends Aside['do']> = Extract<Aside, { readonly do: Type }>

const most = 2n ** 64n - 1n
const least = (value: bigint, other: bigint) => (value < other ? value : other)
const which = <T>(list: readonly T[], n: number): T | undefined => list[n % (list.length || 1)]

/** Sends asides to a wallet. They may move money of Bob, and never money of Alice, whom the histories are about. */
export function asidePlayer(compared: ComparedWallet) {
  const { clock, book, grants, quotes, clientOf } = compared

  function isOfBob({ place: { grant, item } }: Line): boolean {
    return grants[grant]?.[item]?.walletAddress === bob
  }

  async function payByQuote({
    quote,
    grant,
    note,
    from,
  }: Pick<Of<'pay by a quote'>, 'quote' | 'grant' | 'note' | 'from'>): Promise<void> {
    const found = quotes[quote]
    const account = found?.walletAddress ?? bob
    const other = account === alice ? bob : alice
    const request = {
      walletAddress: from === undefined ? account : other,
      quoteId: found?.id ?? 'unknown',
      ...(note && { metadata: { note } }),
    }
    await sendAside('pay by a quote', grant, { client: clientOf(grant), request })
  }

  /** Sends the request unless it would move money of Alice. */
  async function sendAside(what: string, grant: number, asked: Sent): Promise<void> {
    const expectation = compared.expected(grant, asked)
    const charges = typeof expectation !== 'string' && !('id' in expectation)
    if (charges && asked.request.walletAddress !== bob) return
    await compared.send(what, grant, asked)
  }

  /** The amount of an aside, in the asset of the form. */
  function askedFor(aside: Of<'quote' | 'pay' | 'pay with a key'>, form: Form): Asked {
    const grant = aside.grant % grants.length
    const walletAddress = aside.account === 'alice' ? alice : bob
    const item = grants[grant]?.findIndex((plan) => plan.walletAddress === walletAddress) ?? -1
    const { limit } = grants[grant]?.[item] ?? {}
    const { of, percent, offset } = aside.part
    const whole = of === 'limit' ? (limit?.value ?? 1_000n) : book.room(grant, item, clock.now())
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

  async function payAside(aside: Of<'pay' | 'pay with a key'>): Promise<void> {
    const grant = aside.grant % grants.length
    const { walletAddress, receiver, debitAmount = usd(0) } = askedFor(aside, 'debit')
    const request = { walletAddress, incomingPayment: receiver, debitAmount }
    const key = aside.do === 'pay' ? {} : { key: `key-${aside.key}` }
    await sendAside(aside.do, grant, { client: clientOf(grant), request, ...key })
  }

  /** Repeats a request of the same client instance, perhaps with another of its tokens. */
  async function repeat(aside: Of<'repeat'>): Promise<void> {
    const again = which(compared.sent, aside.request)
    const theirs = grants.flatMap((_, grant) => (clientOf(grant) === again?.client ? grant : []))
    const grant = which(theirs, aside.grant)
    if (again !== undefined && grant !== undefined) await sendAside('repeat', grant, again)
  }

  async function reportAside(aside: Of<'begin' | 'cancel' | 'settle' | 'fail'>): Promise<void> {
    const all = book.lines.filter(isOfBob)
    const begun = all.filter(({ state }) => state === 'begun')
    const line = which(aside.payment % 2 === 0 && begun.length > 0 ? begun : all, aside.payment)
    if (line === undefined || book.find(line.id) !== line) return
    const share = (whole: bigint, percent: number) => least((whole * BigInt(percent)) / 100n, most)
    switch (aside.do) {
      case 'begin':
        return void (await compared.begin(line))
      case 'cancel':
        return void (await compared.cancel(line))
      case 'fail': {
        const sent = aside.sent === undefined ? line.sent : share(line.debit, aside.sent)
        return void (await compared.fail(line, { sent, delivered: line.delivered }))
      }
      case 'settle': {
        const sums = {
          sent: share(line.debit, aside.sent),
          delivered: share(line.receive, aside.delivered),
        }
        return void (await compared.settle(line, sums, aside.final))
      }
    }
  }

  async function take(aside: Aside): Promise<void> {
    switch (aside.do) {
      case 'quote':
        return void (await compared.quote(aside.grant % grants.length, askedFor(aside, aside.form)))
      case 'pay':
      case 'pay with a key':
        return payAside(aside)
      case 'pay by a quote': {
        const place = quotes.length - 1 - (aside.quote % (quotes.length || 1))
        const asker = aside.by === 'who asked' ? quotes[place]?.grant : undefined
        const grant = asker ?? aside.grant % grants.length
        return payByQuote({ ...aside, quote: place, grant })
      }
      case 'repeat':
        return repeat(aside)
      default:
        return reportAside(aside)
    }
  }

  return { take, payByQuote, isOfBob }
}
