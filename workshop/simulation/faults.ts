import type { Draw } from './draw.js'

/** How often each fault occurs, as a percentage, and how fast time passes. Drawn anew for each life. */
export interface Weather {
  readonly lostPercent: number
  readonly doubledPercent: number
  readonly readFailsPercent: number
  readonly writeLiesPercent: number
  readonly lagPercent: number
  readonly portFailsPercent: number
  readonly handlerFailsPercent: number
  /** Of all steps that begin something new: how often a fault of the whole world begins. */
  readonly disasterPercent: number
  readonly skewMaxMs: number
  readonly tickMs: number
  readonly focusPercent: number
}

/**
 * Draws which faults a life has. Some lives have few kinds of fault, so that one kind does not hide another.
 */
export function drawWeather(draw: Draw): Weather {
  const rate = (...rates: readonly [number, ...number[]]) => draw.one(0, ...rates)
  return {
    lostPercent: rate(3, 10, 25),
    doubledPercent: rate(5, 15, 40),
    readFailsPercent: rate(1, 3),
    writeLiesPercent: rate(5, 15, 40),
    lagPercent: rate(20, 50),
    portFailsPercent: rate(2, 8),
    handlerFailsPercent: rate(10, 30),
    disasterPercent: rate(2, 5, 10),
    skewMaxMs: draw.one(0, 50, 2_000, 20_000),
    tickMs: draw.one(2, 20, 200, 2_000),
    focusPercent: draw.one(0, 30, 70, 95),
  }
}

export const calm: Omit<Weather, 'tickMs' | 'focusPercent' | 'skewMaxMs'> = {
  lostPercent: 0,
  doubledPercent: 0,
  readFailsPercent: 0,
  writeLiesPercent: 0,
  lagPercent: 0,
  portFailsPercent: 0,
  handlerFailsPercent: 0,
  disasterPercent: 0,
}
