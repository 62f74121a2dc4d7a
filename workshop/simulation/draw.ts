import { seededIndex } from '../../test/support/random.js'

/** All random choices of one life, from one seed. */
export interface Draw {
  /** Returns an integer from 0 to `bound` - 1. */
  below(bound: number): number
  chance(percent: number): boolean
  /** Returns one element, or `undefined` if there is none. */
  pick<Item>(items: readonly Item[]): Item | undefined
  /** Returns one element of a list that is not empty. */
  one<Item>(...items: readonly [Item, ...Item[]]): Item
}

export function createDraw(seed: string): Draw {
  const below = seededIndex(seed)
  return {
    below,
    chance: (percent) => below(100) < percent,
    pick: (items) => (items.length === 0 ? undefined : items[below(items.length)]),
    one: (...items) => items[below(items.length)] ?? items[0],
  }
}
