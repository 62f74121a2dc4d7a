import {
  compareStatements,
  createPacketTables,
  createRail,
  type PaymentSender,
  paymentSender,
  type Rail,
  type RateOf,
  type Receivers,
  type Sql,
  type SqlDatabase,
  type Statement,
  sendOverHttp,
  sqlBook,
  sqlSendingBook,
} from 'open-payments-ilp'
import type { IlpPaymentMethods, ResourceServer, Store } from 'open-payments-server'

interface Database extends SqlDatabase {
  transaction<Result>(work: (sql: Sql, store: Store) => Promise<Result>): Promise<Result>
}

// #region rail
/** Mount `rail.handle` at `/ilp/`: each peer posts to `/ilp/<its ILP address>`. */
export async function openRail(
  database: Database, // with the records of the library
  resources: ResourceServer,
  paymentMethods: IlpPaymentMethods, // `railPaymentMethods`
  rateOf: RateOf,
): Promise<Rail> {
  await createPacketTables(database)
  return createRail<Sql>({
    ilpAddress: 'g.wallet.example',
    assets: [{ assetCode: 'USD', assetScale: 2 }],
    rateOf,
    book: sqlBook(database),
    paymentMethods,
    incomingPayments: resources.incomingPayments,
    receive: (paymentId, funds, fulfill) =>
      database.transaction(async (sql, store) => {
        const { incomingPayments } = resources.within(store)
        const received = await incomingPayments.receive(paymentId, funds)
        // Credit your ledger here, if `received.ok` and `received.changed`.
        if (received.ok) await fulfill(sql)
        return received
      }),
    peers: [
      {
        ilpAddress: 'g.peer.example',
        asset: { assetCode: 'USD', assetScale: 9 }, // in which you settle
        send: sendOverHttp({ url: 'https://peer.example/ilp', token: 'theirs' }),
        token: 'yours',
        creditMax: 10_000_000_000_000n, // the peer may owe 10,000.00 before it settles
      },
    ],
    onError: console.error,
  })
}
// #endregion rail

// #region sender
/** Sends payments to other wallets. Pass `handler(stopping)` to your event consumer. */
export function openSender(
  database: Database,
  rail: Rail,
  { outgoingPayments }: ResourceServer, // with a debit in the transaction of each end
  receivers: Receivers, // such as `receiverOf` of open-payments-client
  rateOf: RateOf, // also between the asset of the link and those of accounts
): PaymentSender {
  const books = { book: sqlBook(database), sendings: sqlSendingBook(database) }
  return paymentSender({ rail, rateOf, ...books, outgoingPayments, receivers })
}
// #endregion sender

// #region compare
/** Decides all that is listed about a peer by its statement of the same period. */
export async function compareBooks(
  sender: PaymentSender,
  here: Statement,
  there: Statement,
): Promise<void> {
  for (const { condition, amount } of compareStatements(here, there)) {
    console.warn(condition, amount)
  }
  for await (const { paymentId, peer } of sender.inDoubt()) {
    if (peer !== 'g.peer.example') continue
    const decision = { what: 'stated', who: 'ada', peer, statement: there } as const
    await sender.decide(paymentId, decision)
  }
}
// #endregion compare
