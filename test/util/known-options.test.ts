import { describe, expect, test } from 'vitest'
import { requireKnownOptions } from '../../src/util/known-options.js'

const known = { quoteLifetimeMs: true, outgoingPaymentHoldMs: true, store: true, clock: true }

function problemOf(options: unknown, path = ''): { option: string; message: string } | undefined {
  try {
    requireKnownOptions<object>(path, options as object, known)
    return undefined
  } catch (error) {
    return error as { option: string; message: string }
  }
}

describe('options', () => {
  test.each([{}, { clock: Date }, { clock: undefined, store: null }])(
    'with known names are accepted: %j',
    (options) => {
      expect(problemOf(options)).toBeUndefined()
    },
  )

  test('may inherit members', () => {
    expect(problemOf(Object.create({ toJSON: () => ({}) }))).toBeUndefined()
  })

  test.each([undefined, null, 'text', 17, true, () => undefined])(
    'must be an object, not %j',
    (options) => {
      expect(problemOf(options)).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        option: 'options',
        message: 'options must be an object',
      })
      expect(problemOf(options, 'policy')).toMatchObject({ option: 'policy' })
    },
  )

  test.each(['constructor', '__proto__', 'hasOwnProperty', 'toString'])(
    'with the name of an inherited member are rejected: %s',
    (name) => {
      expect(problemOf(JSON.parse(`{ "${name}": 1 }`))).toMatchObject({ option: name })
    },
  )
})

describe('an unknown option', () => {
  test('is named with the path of its object', () => {
    expect(problemOf({ quoteLifetime: 1 }, 'policy')).toMatchObject({
      option: 'policy.quoteLifetime',
      message: 'policy.quoteLifetime is not an option; did you mean quoteLifetimeMs?',
    })
  })

  test('is rejected even if its value is undefined', () => {
    expect(problemOf({ clok: undefined })?.message).toBe(
      'clok is not an option; did you mean clock?',
    )
  })

  test.each([
    ['quotelifetimems', 'quoteLifetimeMs'],
    ['quoteLifeTimeMs', 'quoteLifetimeMs'],
    ['outgoingPaymentsHoldMs', 'outgoingPaymentHoldMs'],
    ['outgoingPaymentHold', 'outgoingPaymentHoldMs'],
    ['stroe', 'store'],
    ['colck', 'clock'],
    ['stor', 'store'],
    ['STORE', undefined],
    ['lock', 'clock'],
    ['x', undefined],
    ['', undefined],
    ['database', undefined],
    ['quoteMs', undefined],
  ])('%j: the nearest known name is %j', (name, nearest) => {
    const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`
    expect(problemOf({ [name]: 1 })?.message).toBe(`${name} is not an option${hint}`)
  })
})
