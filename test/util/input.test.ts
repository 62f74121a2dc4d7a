import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import {
  exactly,
  having,
  listOf,
  oneOf,
  optionsOf,
  port,
  readInput,
  text,
} from '../../src/util/input.js'
import { type InvalidInputError, requireKnownOptions } from '../../src/util/invalid-input.js'

function problemOf(schema: v.GenericSchema, value: unknown): string | undefined {
  try {
    readInput('report', schema, value)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

const report = exactly({ reason: text, notes: v.optional(listOf(text)) })

describe('an object with exactly the given members', () => {
  test.each([{ reason: 'x' }, { reason: 'x', notes: [] }, { reason: 'x', notes: undefined }])(
    'is valid: %j',
    (value) => {
      expect(problemOf(report, value)).toBeUndefined()
    },
  )

  test.each([
    [{ raeson: 'x' }, 'report.raeson is not known: the members are reason, notes'],
    [{ reason: 'x', toString: 'x' }, 'report.toString is not known: the members are reason, notes'],
    [{ reason: 'x', other: undefined }, 'report.other is not known: the members are reason, notes'],
    [{}, 'report.reason must be a non-empty string'],
    [{ reason: '' }, 'report.reason must be a non-empty string'],
    [{ reason: 'x', notes: null }, 'report.notes must be an array'],
    [{ reason: 'x', notes: { 0: 'x' } }, 'report.notes must be an array'],
    [{ reason: 'x', notes: ['x', 7] }, 'report.notes.1 must be a non-empty string'],
    [{ reason: 'x', notes: new Array(1) }, 'report.notes.0 must be a non-empty string'],
    [[], 'report must be an object'],
    [null, 'report must be an object'],
    ['reason', 'report must be an object'],
  ])('is invalid: %j', (value, problem) => {
    expect(problemOf(report, value)).toBe(problem)
  })
})

test('an object with at least the given members may have others', () => {
  const check = having({ reason: text })
  expect(problemOf(check, { reason: 'x', other: 1 })).toBeUndefined()
  expect(problemOf(check, { other: 1 })).toBe('report.reason must be a non-empty string')
})

const known = { quoteLifetimeMs: true, store: true, clock: true }

function optionProblemOf(options: unknown, path = ''): InvalidInputError | undefined {
  try {
    requireKnownOptions<object>(path, options as object, known)
    return undefined
  } catch (error) {
    return error as InvalidInputError
  }
}

describe('options', () => {
  test.each([{}, { clock: Date }, { clock: undefined, store: null }])(
    'with known names are accepted: %j',
    (options) => {
      expect(optionProblemOf(options)).toBeUndefined()
    },
  )

  test('may inherit members', () => {
    expect(optionProblemOf(Object.create({ toJSON: () => ({}) }))).toBeUndefined()
  })

  test.each([undefined, null, 'text', 17, true, () => undefined])(
    'must be an object, not %j',
    (options) => {
      expect(optionProblemOf(options)).toMatchObject({
        code: 'ERR_INVALID_INPUT',
        path: ['options'],
        message: 'options must be an object',
      })
      expect(optionProblemOf(options, 'policy')).toMatchObject({ path: ['policy'] })
    },
  )

  test.each(['constructor', '__proto__', 'hasOwnProperty', 'toString'])(
    'with the name of an inherited member are rejected: %s',
    (name) => {
      expect(optionProblemOf(JSON.parse(`{ "${name}": 1 }`))).toMatchObject({ path: [name] })
    },
  )
})

describe('an unknown option', () => {
  test('is named with the path of its object', () => {
    expect(optionProblemOf({ quoteLifetime: 1 }, 'policy')).toMatchObject({
      path: ['policy', 'quoteLifetime'],
      message: 'policy.quoteLifetime is not known: the options are quoteLifetimeMs, store, clock',
    })
  })

  test('is rejected even if its value is undefined', () => {
    expect(optionProblemOf({ clok: undefined })?.message).toBe(
      'clok is not known: the options are quoteLifetimeMs, store, clock',
    )
  })

  test('is named as it is written, even with a dot or as a number', () => {
    expect(optionProblemOf({ 'a.b': 1 }, 'keys.0')).toMatchObject({ path: ['keys', 0, 'a.b'] })
    expect(optionProblemOf({ 7: 1 })).toMatchObject({ path: ['7'] })
  })
})

test('a name that is not one of the known ones is refused with a list of them', () => {
  const check = oneOf('open', 'closed')
  expect(problemOf(check, 'open')).toBeUndefined()
  for (const value of ['opn', 'toString', '', 7, undefined]) {
    expect(problemOf(check, value)).toBe('report must be one of open, closed')
  }
})

describe('options that are read', () => {
  const policy = optionsOf({ lifetimeMs: v.optional(v.number(), 60), name: v.optional(text) })

  test('have their defaults, and no member that is undefined', () => {
    expect(readInput('policy', policy, { name: undefined })).toStrictEqual({ lifetimeMs: 60 })
  })

  test('are the same when they are read again', () => {
    const read = readInput('policy', policy, { name: 'x' })
    expect(readInput('policy', policy, read)).toStrictEqual(read)
  })

  test('contain the ports themselves, whose methods may be inherited', () => {
    class Accounts {
      find() {
        return undefined
      }
    }
    const accounts = new Accounts()
    const options = optionsOf({ accounts: port<Accounts>('find') })
    expect(readInput('', options, { accounts }).accounts).toBe(accounts)
  })

  test('report an unknown name before a missing option, which the name may be meant for', () => {
    const options = optionsOf({ accounts: port<{ find(): unknown }>('find') })
    expect(problemOf(options, { acounts: {} })).toBe(
      'report.acounts is not known: the options are accounts',
    )
    expect(problemOf(options, {})).toBe('report.accounts is required')
  })
})

describe('an object with methods', () => {
  const problem = (value: unknown) => problemOf(port<{ find(): unknown }>('find'), value)

  test('may be an object or a function with them', () => {
    expect(problem({ find: () => undefined })).toBeUndefined()
    expect(problem(Object.assign(() => undefined, { find: () => undefined }))).toBeUndefined()
  })

  test('is no list, although a list has a method find, and no text', () => {
    expect(problem([{ url: 'https://wallet.example/alice' }])).toBe(
      'report must have a method find',
    )
    expect(problem('postgres://user:password@database')).toBe('report must have a method find')
  })

  test('is no promise of it, which nobody has awaited', () => {
    expect(problem(Promise.resolve({ find: () => undefined }))).toBe(
      'report is a promise: await it first',
    )
  })
})
