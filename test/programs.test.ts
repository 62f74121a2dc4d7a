import fc from 'fast-check'
import {
  nodeProblem,
  readArguments,
  runWith,
  UsageError,
  unknownWord,
} from 'open-payments-programs'
import { describe, expect, test } from 'vitest'
import { runs } from './support/runs.js'

const options = {
  amount: { type: 'string' },
  approve: { type: 'string', multiple: true },
  json: { type: 'boolean' },
} as const

const read = (...args: string[]) => readArguments(args, options, 1)

describe('the arguments of a program', () => {
  test('are its options and others, in any order', () => {
    const { values, positionals } = read(
      '--json',
      'bob',
      '--amount=5',
      '--approve',
      'a',
      '--approve',
      'b',
    )
    expect(values).toMatchObject({ json: true, amount: '5', approve: ['a', 'b'] })
    expect(positionals).toEqual(['bob'])
  })

  test.each([
    [['--ammount', '5'], 'unknown option --ammount: did you mean --amount?'],
    [['--amoutn=5'], 'unknown option --amoutn: did you mean --amount?'],
    [['--jsno'], 'unknown option --jsno: did you mean --json?'],
    [['--verison'], 'unknown option --verison: did you mean --version?'],
    [['--colour'], 'unknown option --colour'],
    [['-x'], 'unknown option -x: did you mean -h?'],
    [['--amount'], '--amount needs a value'],
    [['--amount', '--json'], '--amount needs a value'],
    [['--json=yes'], '--json takes no value'],
    [['one', 'two'], 'unexpected argument: two'],
    [['--toString'], 'unknown option --toString'],
  ])('%j are refused', (args, message) => {
    expect(() => read(...args)).toThrow(new UsageError(message))
  })

  test('are read or refused with a UsageError, whatever they are', () => {
    const word = fc.oneof(
      fc.constantFrom('--amount', '--json', '--amount=', '--', '-', '-h', '--help=1', '-hx', '---'),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(word), (args) => {
        try {
          expect(read(...args).positionals.length).toBeLessThanOrEqual(1)
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError)
        }
      }),
      { numRuns: runs(500) },
    )
  })

  test('a word with one mistake leads to the word that was meant', () => {
    const words = ['--amount', '--description', '--allow-private']
    const mistake = fc.tuple(
      fc.constantFrom(...words),
      fc.integer({ min: 2, max: 7 }),
      fc.constantFrom('insert', 'delete', 'replace', 'swap'),
    )
    fc.assert(
      fc.property(mistake, ([word, at, kind]) => {
        const [before, here, next = '', after] = [
          word.slice(0, at),
          word.charAt(at),
          word.charAt(at + 1),
          word.slice(at + 2),
        ]
        const wrong = {
          insert: `${before}${here}x${next}${after}`,
          delete: before + next + after,
          replace: `${before}x${next}${after}`,
          swap: before + next + here + after,
        }[kind]
        expect(unknownWord('option', wrong, words).message).toContain(`did you mean ${word}?`)
      }),
      { numRuns: runs(200) },
    )
  })

  test('a UsageError of the work ends with the exit code 2, and any other error is passed on', async () => {
    const printed: string[] = []
    const output = { out: () => {}, err: (text: string) => void printed.push(text) }
    const program = { name: 'program', usage: '', manifest: new URL('file:///nowhere'), options }
    const failing = (error: Error) => runWith(program, [], output, () => Promise.reject(error))
    expect(await failing(new UsageError('\x1b[2J'))).toBe(2)
    expect(printed.join('')).toBe('\\u001b[2J\nSee program --help.\n')
    await expect(failing(new TypeError('a mistake'))).rejects.toThrow('a mistake')
  })
})

describe('the version of Node.js', () => {
  test.each(['18.20.0', '20.18.3', '21.7.0', '22.11.0'])('%s is refused', (version) => {
    expect(nodeProblem(version)).toContain(
      `needs Node.js 20.19, or 22.12 or newer. This is ${version}`,
    )
  })

  test.each(['20.19.0', '22.12.0', '23.0.0', '24.0.0', '26.1.0'])('%s is supported', (version) => {
    expect(nodeProblem(version)).toBeUndefined()
  })
})
