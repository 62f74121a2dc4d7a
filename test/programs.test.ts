import { EventEmitter } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import fc from 'fast-check'
import {
  answerTo,
  nodeProblem,
  outliveReaders,
  readArguments,
  runWith,
  UsageError,
  unknownWord,
} from 'open-payments-programs'
import { describe, expect, test } from 'vitest'
import { piped } from './support/piped.js'
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

describe('output that nobody reads', () => {
  const doctor = 'packages/doctor/src/main.ts'

  test.each([
    ['stdout', '--help', 0],
    ['stderr', '--halp', 2],
  ] as const)(
    'on %s of a program with %s leaves the exit code %i',
    async (name, option, expected) => {
      const { child, printed, ended } = piped([doctor, option])
      child[name].destroy()
      expect(await ended).toBe(expected)
      expect(printed).toEqual({ out: '', err: '' })
    },
  )

  test('is lost without a word if its reader has gone, and else with one', () => {
    const printed: string[] = []
    const stream = (name: string) => {
      const events = new EventEmitter() as NodeJS.WriteStream
      return Object.assign(events, {
        write: (text: string) => printed.push(`${name}: ${text}`) > 0,
      })
    }
    const [stdout, stderr] = [stream('stdout'), stream('stderr')]
    outliveReaders(stdout, stderr)
    for (const code of ['EPIPE', 'ENOSPC', 'EPIPE', 'ENOSPC']) {
      for (const each of [stdout, stderr]) each.emit('error', Object.assign(new Error(), { code }))
    }
    expect(printed).toEqual([
      'stderr: The output is lost: ENOSPC\n',
      'stdout: The output is lost: ENOSPC\n',
    ])
  })
})

describe('a question', () => {
  const shown = () => new PassThrough()

  test('is answered by a line, without the spaces around it', async () => {
    const [input, output] = [new PassThrough(), shown()]
    const answer = answerTo('Pay this? ', { input, output })
    input.write(' yes \nno\n')
    expect([await answer, String(output.read())]).toEqual(['yes', 'Pay this? '])
  })

  test('has no answer at the end of the input', async () => {
    const input = new PassThrough()
    const answer = answerTo('Pay this? ', { input, output: shown() })
    input.end()
    expect(await answer).toBeUndefined()
  })

  test('has no answer after an interruption', async () => {
    const interruption = new AbortController()
    const { signal: interrupted } = interruption
    const answer = answerTo('Pay this? ', {
      input: new PassThrough(),
      output: shown(),
      interrupted,
    })
    interruption.abort()
    expect(await answer).toBeUndefined()
  })

  test('that cannot be shown has no answer', async () => {
    const output = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) })
    output.on('error', () => {})
    expect(await answerTo('Pay this? ', { input: new PassThrough(), output })).toBeUndefined()
  })
})
