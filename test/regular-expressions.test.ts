import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const folders = [
  'src',
  'adapters',
  'packages/cli/src',
  'packages/doctor/src',
  'packages/ilp/src',
  'packages/kysely/src',
  'packages/pages/src',
  'packages/rafiki/src',
]
const files = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name)),
)

interface Expression {
  readonly file: string
  /** The pattern; `…` stands for an inserted part. */
  readonly pattern: string
  readonly flags: string
}

/** Returns all regular expressions of a file: literals, and first arguments of `new RegExp`. */
function expressionsIn(file: string): Expression[] {
  const found: Expression[] = []
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest)
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/')
      found.push({ file, pattern: node.text.slice(1, end), flags: node.text.slice(end + 1) })
    }
    if (ts.isNewExpression(node) && node.expression.getText(source) === 'RegExp') {
      const [pattern, flags] = node.arguments ?? []
      found.push({
        file,
        pattern: (pattern?.getText(source) ?? '').slice(1, -1).replace(/\$\{\w+\}/g, '…'),
        flags: flags === undefined ? '' : flags.getText(source).slice(1, -1),
      })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

const expressions = files.flatMap(expressionsIn)

/** Removes escapes and the content of character classes, so that only syntax is left. */
function syntaxOf(pattern: string): string {
  return pattern.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, '[]')
}

/** Splits at each `|` outside of groups. */
function alternativesOf(syntax: string): string[] {
  let depth = 0
  const parts = ['']
  for (const character of syntax) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (character === '|' && depth === 0) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}

/** Inserted parts count as unbounded repetitions. */
const unbounded = /[*+…]|\{\d+,\}/

/** Searches that are not anchored, and why they still take a time linear in the length of the text. */
const searches = [
  // Each attempt begins at a dollar sign, and ends before the next one.
  '\\$(\\d+)',
  // A canonical URL has no line break, so the first match succeeds.
  '\\/incoming-payments\\/.+$',
  // Each attempt begins at a comma, and ends before the next one.
  '(^|,)\\s*no-store\\s*(,|$)',
  // A dictionary has at most 2,048 characters, and has been parsed: each string that begins also ends.
  '…|[,;]',
  '(?:…|[^",])+',
  // Each attempt begins at a separator, and ends before the next one.
  '[=( ](?:-?[0-9]+\\.|@|%")',
  '; *([a-z*][a-z0-9_\\-.*]*)=-?[0-9]+\\.',
]

/** Groups that repeat a repetition, and begin with a character that the repetition inside cannot match. */
const delimited = [
  '(?:\\.[a-z0-9+-]+)+',
  '(?:\\.[a-zA-Z0-9_~-]+)+',
  '(?:\\\\["\\\\][ !#-[\\]-~]*)*',
  '(?:%[0-9a-f]{2}[ !#$&-~]*)*',
]

describe('regular expressions', () => {
  test('are found in the sources', () => {
    expect(expressions.length).toBeGreaterThan(50)
  })

  test('with an unbounded repetition match only at one position of the text', () => {
    const loose = expressions.filter(
      ({ pattern, flags }) =>
        !flags.includes('y') &&
        !searches.includes(pattern) &&
        alternativesOf(syntaxOf(pattern)).some((part) => unbounded.test(part) && part[0] !== '^'),
    )
    expect(loose).toEqual([])
  })

  test('do not repeat a repetition', () => {
    const nested = expressions.filter(({ pattern }) => {
      const rest = delimited.reduce((text, group) => text.replace(group, ''), pattern)
      return /\([^()]*[*+][^()]*\)[*+]/.test(syntaxOf(rest))
    })
    expect(nested).toEqual([])
  })
})
