import { addressIn } from './ip-address.js'

/**
 * Returns the domain that was probably registered for a hostname: its last two labels, or three below a registry of a
 * country. All IP addresses are one site, because a client can name any address.
 *
 * This decides who shares limits, so that using many subdomains does not raise a limit. The rule is an approximation:
 * hosts of different owners below one domain, as in `alice.hosting.example`, share the limits too.
 */
export function siteOf(hostname: string): string {
  if (addressIn(hostname) !== undefined) return 'addresses'
  const labels = hostname.split('.')
  const [label = '', country = ''] = labels.slice(-2)
  const isRegistry = registries.get(label)?.has(country) || open.has(country)
  return labels.slice(isRegistry ? -3 : -2).join('.')
}

/**
 * The labels below which the registries of countries register names, as in `example.co.uk`, with these countries. They
 * are the common labels in the ICANN section of the Public Suffix List. The whole list changes every week and is larger
 * than this library. A pair that is missing here is safe, because the names below it share limits; a pair that is not
 * a registry would give its owner any number of sites.
 */
const registries = new Map(
  Object.entries({
    ac:
      'ae at bd be ci cn cr cy eg fj gn id il im in ir jp ke kr lk ls ma me mu mw mz ni nz ' +
      'pa pk pr rs rw se sz th tz ug uk vn za zm zw',
    co:
      'ae ag am ao at bb bd bi bj bw bz ci cl cm cr dm gg gl gy hu id il im in io ir it je ' +
      'jp ke kr lc ls ma me mg mu mw mz na ni nz om pn rs rw ss st sz th tj tm tt tz ug uk ' +
      'us uz ve vi za zm zw',
    com:
      'ac af ag ai al am ar au aw az ba bb bd bh bi bj bm bn bo br bs bt by bz ci cm cn co ' +
      'cu cv cw cy dm do dz ec ee eg es et fj fm fr ge gh gi gl gn gp gr gt gu gy hk hn hr ' +
      'ht im in io iq jo kg kh ki km kp kw ky kz la lb lc lk lr lv ly mg mk ml mo ms mt mu ' +
      'mv mw mx my na nf ng ni nr om pa pe pf ph pk pl pr ps pt py qa re ro sa sb sc sd sg ' +
      'sh sl sn so ss st sv sy tj tm tn to tr tt tw ua ug uy uz vc ve vi vn vu ws ye zm',
    edu:
      'ac af al ao ar au az ba bb bd bh bi bj bm bn bo br bs bt bz ci cn co cu cv cw dm do ' +
      'dz ec ee eg es et fm gd ge gh gi gl gn gp gr gt gu gy hk hn ht in io iq it jo kg kh ' +
      'ki km kn kp kw ky kz la lb lc lk lr ls lv ly me mg mk ml mn mo ms mt mv mw mx my mz ' +
      'ng ni nr om pa pe pf ph pk pl pn pr ps pt py qa rs sa sb sc sd sg sl sn so ss st sv ' +
      'sy tj tm to tr tt tw ua uy vc ve vn vu ws ye za zm',
    go: 'ci cr id it jp ke kr th tj tz ug',
    gov:
      'ac ae af al ao ar as au az ba bb bd bf bh bm bn br bs bt by bz cd cl cm cn co cx cy ' +
      'dm do dz ec ee eg et fj gd ge gh gi gn gr gu gy hk ie il in io iq ir it jo kg kh ki ' +
      'km kn kp kw kz la lb lc lk lr ls lt lv ly ma me mg mk ml mn mo mr ms mu mv mw my mz ' +
      'na ng nr om ph pk pl pn pr ps pt py qa rs rw sa sb sc sd sg sh sl so ss sx sy tj tl ' +
      'tm tn to tr tt tw ua uk vc ve vn ws ye za zm zw',
    ltd: 'cy gi lk uk',
    me: 'eg in it ke so ss tz uk us',
    ne: 'jp ke kr tz ug us',
    net:
      'ac ae af ag ai al am ar au az ba bb bd bh bj bm bn bo br bs bt bz ci cm cn co cu cv ' +
      'cw cy dm do dz ec eg et fj fm ge gg gl gn gp gr gt gu gy hk hn ht id il im in io iq ' +
      'ir je jo kg kh ki kn kw ky kz la lb lc lk lr ls lv ly ma me mk ml mo ms mt mu mv mw ' +
      'mx my mz na nf ng ni nr nz om pa pe ph pk pl pn pr ps pt py qa rw sa sb sc sd sg sh ' +
      'sl so ss st sy th tj tm tn to tr tt tw ua uk uy uz vc ve vi vn vu ws ye za zm',
    or: 'at bi ci cr id it jp ke kr mu th tz ug us',
    org:
      'ac ae af ag ai al am ao ar au az ba bb bd bh bi bj bm bn bo br bs bt bw bz ci cn co ' +
      'cu cv cw cy dm do dz ec ee eg es et fj fm ge gg gh gi gl gn gp gr gt gu gy hk hn ht ' +
      'hu il im in io iq ir je jo kg kh ki km kn kp kw ky kz la lb lc lk lr ls lv ly ma me ' +
      'mg mk ml mn mo ms mt mu mv mw mx my mz na ng ni nr nz om pa pe pf ph pk pl pn pr ps ' +
      'pt py qa ro rs rw sa sb sc sd se sg sh sl sn so ss st sv sy sz tj tm tn to tr tt tw ' +
      'ua ug uk uy uz vc ve vi vn vu ws ye za zm zw',
    plc: 'ly uk',
  }).map(([label, countries]) => [label, new Set(countries.split(' '))]),
)

/** Countries that register names below any label. */
const open = new Set(['ck', 'er', 'fk', 'jm', 'mm', 'np', 'pg'])
