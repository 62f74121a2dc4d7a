// #region next-route
import { toFetch } from 'open-payments-server'
import { wallet } from '../../wallet'

const serve = (request: Request) => toFetch(wallet().handle)(request)

export { serve as DELETE, serve as GET, serve as OPTIONS, serve as POST }
// #endregion next-route
