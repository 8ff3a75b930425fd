/* date: the Gregorian calendar in UTC, without the C library's: gmtime_r takes
 * a lock, and first reads the time zone from a file. Pure. */
#ifndef TIDE_DATE_H
#define TIDE_DATE_H

#include <stdint.h>

/* Days since 1970-01-01 to a date; month and day count from 1. [any] */
static inline void tide_date_of(int64_t days, int *year, int *month, int *day) {
  /* Years are counted from March, so that the leap day is a year's last. */
  days += 719468; /* from 0000-03-01 */
  int64_t era = days / 146097;
  int64_t of_era = days % 146097;
  int64_t year_of_era =
      (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year =
      of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t from_march = (5 * of_year + 2) / 153;

  *day = (int)(of_year - (153 * from_march + 2) / 5 + 1);
  *month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
  *year = (int)(year_of_era + era * 400 + (*month <= 2 ? 1 : 0));
}

#endif
