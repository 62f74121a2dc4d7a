import { describe, expect, test } from 'vitest'
import * as adapter from '../src/entry-adapter.js'
import * as main from '../src/index.js'

describe('the main entry', () => {
  test('exports the servers, the ports of the library and the errors, and no other value', () => {
    expect(Object.keys(main).sort()).toEqual([
      'ArgumentError',
      'ClockError',
      'ContentionError',
      'FetchRefusedError',
      'HostAnswerError',
      'HostUnreachableError',
      'NoResponseError',
      'OptionError',
      'RawBodyError',
      'StoreTimeoutError',
      'TransactionError',
      'consumeEvents',
      'createAuthorizationServer',
      'createResourceServer',
      'createSignatureVerifier',
      'createWalletAddressServer',
      'guardedFetch',
      'ilpPaymentMethods',
      'memoryStore',
      'refusals',
      'remoteClientKeys',
      'remoteIntrospection',
      'runSweeps',
      'storeBounds',
      'toFetch',
      'walletAddressSubjects',
    ])
  })
})

describe('an error that a host catches', () => {
  const cause = new Error('the cause')
  const errors = [
    { error: new main.OptionError('store', 'is required'), code: 'ERR_INVALID_OPTION' },
    {
      error: new main.ArgumentError('paymentId', 'must be a non-empty string'),
      code: 'ERR_INVALID_ARGUMENT',
    },
    { error: new main.ClockError('the clock went back'), code: 'ERR_CLOCK' },
    { error: new main.ContentionError(), code: 'ERR_CONTENTION' },
    {
      error: new main.TransactionError('ERR_RESTART_TRANSACTION', 'a deadlock', { cause }),
      code: 'ERR_RESTART_TRANSACTION',
    },
    {
      error: new main.TransactionError('ERR_TRANSACTION_FAILED', 'an error', { cause }),
      code: 'ERR_TRANSACTION_FAILED',
    },
    {
      error: new main.FetchRefusedError('the port is not allowed'),
      code: 'ERR_FETCH_REFUSED',
    },
    { error: new main.HostUnreachableError('no such name'), code: 'ERR_HOST_UNREACHABLE' },
    { error: new main.NoResponseError('it closed the connection'), code: 'ERR_NO_RESPONSE' },
    { error: new main.HostAnswerError('mayPay', 'it is wrong'), code: 'ERR_HOST_ANSWER' },
    { error: new adapter.RawBodyError('mount it first'), code: 'ERR_RAW_BODY_UNAVAILABLE' },
  ]

  test.each(errors)('with the code $code is an instance of its class', ({ error, code }) => {
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ code, message: expect.stringMatching(/^\S.*\S$/) })
    expect(error.stack).toContain('index.test.ts')
  })

  test.each([
    new main.OptionError('store', 'is required'),
    new main.ArgumentError('paymentId', 'is invalid'),
    new adapter.RawBodyError('mount it'),
  ])('is a TypeError if the caller made a mistake: $code', (error) => {
    expect(error).toBeInstanceOf(TypeError)
    expect(error.name).toBe('TypeError')
  })

  test('names the option in its message and in `option`', () => {
    const error = new main.OptionError('policy.waitMs', 'must be an integer')
    expect(error).toMatchObject({
      option: 'policy.waitMs',
      message: 'policy.waitMs must be an integer',
    })
  })

  test('is the same class in every entry that exports it', () => {
    expect(main.RawBodyError).toBe(adapter.RawBodyError)
  })

  test('keeps the cause of a failed transaction', () => {
    const error = new main.TransactionError('ERR_TRANSACTION_FAILED', 'an error', { cause })
    expect(error.cause).toBe(cause)
  })
})
