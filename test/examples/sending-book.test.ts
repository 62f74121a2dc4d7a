import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  memorySendingBook,
  postgresSendingBook,
  type SendingBook,
} from '../../examples/ilp/sending-book.js'
import { freshPglite } from '../support/databases.js'

let inDatabase: SendingBook
let close: () => Promise<void>
beforeAll(async () => {
  const database = await freshPglite()
  inDatabase = await postgresSendingBook(database, 'https://wallet.example')
  close = database.close
})
afterAll(() => close())

describe.each<[string, () => SendingBook]>([
  ['in memory', memorySendingBook],
  ['in a database', () => inDatabase],
])('the record of payments in progress, %s', (_, open) => {
  const nothing = { sent: 0n, delivered: 0n, pending: [] }
  const pending = [{ packet: 'AAEC', sharedSecret: 'c2VjcmV0' }]
  const much = { sent: 2n ** 63n, delivered: 1n, pending, receivedBefore: 2n ** 62n }

  test('keeps the progress for the next writer of a payment', async () => {
    const book = open()
    expect(await book.take('kept', 'first')).toEqual(nothing)
    expect(await book.write('kept', 'first', much)).toBe(true)
    expect(await book.take('kept', 'second')).toEqual(much)
  })

  test('has one writer for each payment: the last to take it', async () => {
    const book = open()
    await book.take('shared', 'first')
    await book.take('shared', 'second')
    expect(await book.write('shared', 'first', much)).toBe(false)
    await book.forget('shared', 'first')
    expect(await book.write('shared', 'second', { ...much, sent: 1n })).toBe(true)
    expect(await book.take('shared', 'third')).toEqual({ ...much, sent: 1n })
  })

  test('removes a payment that is over, and accepts no more progress for it', async () => {
    const book = open()
    await book.take('over', 'writer')
    await book.write('over', 'writer', much)
    await book.forget('over', 'writer')
    expect(await book.write('over', 'writer', much)).toBe(false)
    expect(await book.take('over', 'writer')).toEqual(nothing)
  })
})
