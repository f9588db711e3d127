// Write instants as the clocks of a home show them.

const FORM = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const LOCALE = "en-GB";

/** Make the clock of a time zone, or of UTC when the browser does not know the zone. */
export function clock(zone) {
  const own = known(zone) ? zone : "UTC";
  const form = (parts) => new Intl.DateTimeFormat(LOCALE, { timeZone: own, ...parts });
  const [moment, dated] = [form(FORM), form({ ...FORM, year: "numeric" })];
  const [hour, day] = [form({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
    form({ weekday: "short" })];
  return { zone: own, moment: (text) => moment.format(new Date(text)),
    dated: (text) => dated.format(new Date(text)).replace(",", ""), // no comma after the weekday, as in a moment
    hour: (time) => hour.format(time), day: (time) => day.format(time) };
}

function known(zone) {
  try {
    return Boolean(new Intl.DateTimeFormat(LOCALE, { timeZone: zone }));
  } catch {
    return false;
  }
}
