/**
 * Interledger for a wallet: a STREAM receiver and sender, ILP over HTTP, and the book of the packets between the wallet
 * and its direct peers.
 *
 * @module open-payments-ilp
 */

export type {
  Decision,
  NewPacket,
  PacketBook,
  PacketKey,
  PacketQuery,
  PacketRow,
  PacketState,
  Reservation,
  Settlement,
} from './book.js'
export { memoryBook } from './memory-book.js'
export {
  type Closed,
  closeOverHttp,
  type IlpOverHttpOptions,
  ilpOverHttp,
  type SendOverHttpOptions,
  sendOverHttp,
} from './over-http.js'
export type { IlpHandler } from './packet.js'
export { railPaymentMethods } from './payment-methods.js'
export {
  createRail,
  type Peer,
  type Rail,
  type RailOptions,
  type RateOf,
} from './rail.js'
export type { Rate } from './rates.js'
export { PacketReleasedError, type Received } from './receiver.js'
export {
  type Ended,
  type PayOverIlpOptions,
  type PayOverIlpResult,
  payOverIlp,
  type Sent,
} from './sender.js'
export { type PaymentSender, paymentSender } from './sending.js'
export {
  type EndedPayment,
  memorySendingBook,
  type Route,
  type Sending,
  type SendingBook,
  sqlSendingBook,
} from './sending-book.js'
export type { SendingDecided, SendingDecision, SendingRefusal } from './sending-decision.js'
export type { SendingInDoubt } from './sending-end.js'
export type { PaymentSenderOptions, Receiver, Receivers } from './sending-options.js'
export { createPacketTables, type Sql, type SqlDatabase, sqlBook } from './sql-book.js'
export {
  compareStatements,
  type StatedPacket,
  type Statement,
  type StatementDifference,
  statementOf,
} from './statement.js'
