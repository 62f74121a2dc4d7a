import { seededIndex } from '../random.js'

/** Cheap choices that depend on a seed alone: a generator of fast-check is too slow for millions of inputs. */
export interface Dice {
  /** Returns an integer from 0 to `bound` - 1. */
  below(bound: number): number
  /** Returns true in so many of a hundred cases. */
  chance(percent: number): boolean
  pick<Item>(items: readonly Item[]): Item
  /** Returns an item as often as its weight says. */
  weighted<Item>(items: readonly (readonly [weight: number, item: Item])[]): Item
  /** Returns `least` to `most` results of a function. */
  some<Item>(least: number, most: number, make: () => Item): Item[]
}

export function createDice(seed: string): Dice {
  const below = seededIndex(seed)
  const pick = <Item>(items: readonly Item[]) => items[below(items.length)] as Item
  return {
    below,
    chance: (percent) => below(100) < percent,
    pick,
    weighted(items) {
      let at = below(items.reduce((sum, [weight]) => sum + weight, 0))
      for (const [weight, item] of items) {
        if (at < weight) return item
        at -= weight
      }
      throw new Error('no items')
    },
    some: (least, most, make) => Array.from({ length: least + below(most - least + 1) }, make),
  }
}
