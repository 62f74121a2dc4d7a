import { InvalidInputError } from 'open-payments-server'
import type { english } from './languages/en.js'

/** The key of a text. */
export type TextKey = Exclude<keyof typeof english, 'direction' | `${string}.${PluralCategory}`>

/** The plural categories that have forms of their own. */
export type PluralCategory = 'zero' | 'one' | 'two' | 'few' | 'many'

/**
 * The texts of a language by key: those of `english`, with the same slots. The plural forms of `times` are those of the
 * language: `times` without a suffix is the form for all other numbers.
 */
export type Texts = Readonly<Record<TextKey, string>> &
  Readonly<Partial<Record<`times.${PluralCategory}`, string>>> & {
    readonly direction: string
  }

/** Splits a text into plain parts and, at the odd indices, the names of slots. */
export function partsOf(text: string): readonly string[] {
  return text.split(/\{(\w{1,20})\}/)
}

function slotsOf(text: string): string {
  return partsOf(text)
    .filter((_, index) => index % 2 === 1)
    .sort()
    .join()
}

/**
 * Checks the texts of a language: a text without its slots would hide from an owner what an app may do.
 *
 * @throws {InvalidInputError} for the first text that is missing or lacks a slot.
 */
export function requireTexts(path: string, given: Texts, model: Texts): void {
  if (given.direction !== 'ltr' && given.direction !== 'rtl') {
    throw new InvalidInputError([...path.split('.'), 'direction'], 'must be ltr or rtl')
  }
  for (const key of Object.keys(model) as (keyof Texts)[]) {
    const [text, expected = ''] = [given[key], model[key]]
    if (key.startsWith('times.') && text === undefined) continue
    const slots = slotsOf(expected)
    if (typeof text === 'string' && (key.startsWith('times.') || slotsOf(text) === slots)) continue
    const needs = slots === '' ? 'without slots' : `with the slots ${slots}`
    throw new InvalidInputError([...path.split('.'), key], `must be a text ${needs}`)
  }
}
