import { describe, expect, test } from 'vitest'
import * as adapter from '../src/entry-adapter.js'
import * as main from '../src/index.js'
import { importWithBuiltins } from './support/portable.js'

describe('the main entry', () => {
  test('exports the servers, the ports of the library and the errors, and no other value', () => {
    expect(Object.keys(main).sort()).toEqual([
      'ClientKeyError',
      'ClockError',
      'ContentionError',
      'FetchRefusedError',
      'HostAnswerError',
      'HostTimeoutError',
      'HostUnreachableError',
      'InvalidInputError',
      'NoResponseError',
      'RawBodyError',
      'StoreTimeoutError',
      'TransactionError',
      'consumeEvents',
      'createAuthorizationServer',
      'createResourceServer',
      'createSignatureVerifier',
      'createWallet',
      'createWalletAddressServer',
      'displayName',
      'guardedFetch',
      'ilpPaymentMethods',
      'isPublicAddress',
      'memoryStore',
      'readClientKey',
      'remoteClientKeys',
      'remoteGrants',
      'requestSigner',
      'runSweeps',
      'toFetch',
      'walletAddressSubjects',
    ])
  })
})

test('the import loads only the modules of Node that each process has already', async () => {
  const loaded: string[] = []
  const find = process.getBuiltinModule.bind(process)
  const recording = (id: string) => {
    loaded.push(id)
    return find(id)
  }
  await importWithBuiltins(recording, () => import('../src/index.js'))
  expect(loaded.sort()).toEqual(['node:diagnostics_channel', 'node:timers'])
})

describe('an error that a host catches', () => {
  const cause = new Error('the cause')
  const errors = [
    { error: new main.InvalidInputError('store', 'is required'), code: 'ERR_INVALID_INPUT' },
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
    { error: new main.HostTimeoutError('mayPay', 9), code: 'ERR_HOST_TIMEOUT' },
    { error: new adapter.RawBodyError('mount it first'), code: 'ERR_RAW_BODY_UNAVAILABLE' },
  ]

  test.each(errors)('with the code $code is an instance of its class', ({ error, code }) => {
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ code, message: expect.stringMatching(/^\S.*\S$/) })
    expect(error.stack).toContain('index.test.ts')
  })

  test.each([
    new main.InvalidInputError('store', 'is required'),
    new adapter.RawBodyError('mount it'),
  ])('is a TypeError if the caller made a mistake: $code', (error) => {
    expect(error).toBeInstanceOf(TypeError)
    expect(error.name).toBe('TypeError')
  })

  test.each([
    ['store', ['store'], 'store'],
    ['policy.waitMs', ['policy', 'waitMs'], 'policy.waitMs'],
    ['servers.0.keys.12', ['servers', 0, 'keys', 12], 'servers.0.keys.12'],
    [['servers', 0, 'a.b'], ['servers', 0, 'a.b'], 'servers.0.a.b'],
  ])('has the path of the invalid input, also in its message: %j', (given, path, text) => {
    const error = new main.InvalidInputError(given, 'must be an integer')
    expect(error).toMatchObject({ path, message: `${text} must be an integer` })
  })

  test('is the same class in every entry that exports it', () => {
    expect(main.RawBodyError).toBe(adapter.RawBodyError)
  })

  test('keeps the cause of a failed transaction', () => {
    const error = new main.TransactionError('ERR_TRANSACTION_FAILED', 'an error', { cause })
    expect(error.cause).toBe(cause)
  })
})
