/** Any JSON value. Records, events and metadata consist of these. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json }

/** An object of JSON values. */
export type JsonObject = { readonly [key: string]: Json }
