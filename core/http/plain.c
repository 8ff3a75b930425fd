/* plain: answers whose heads say nothing of their own.
 *
 * A head depends on the date, on constants and on the length of the body: for a
 * second, all but the length stays as it is. It is made by response.c like any
 * other, kept, and copied into the batch around each length.
 */
#include <string.h>

#include "internal.h"

enum { DIGITS = 20 }; /* of tide_response_number */

static bool make(tide_plain_head *plain, const tide_listener *listener,
                 const tide_answer *answer) {
  static const char field[] = "Content-Length: 0";
  tide_answer empty = *answer;
  tide_head_facts facts = {.date = tide_answer__date(listener->http),
                           .idle = listener->idle_text};
  tide_body_framing framing;
  plain->until = 0;
  empty.body = NULL;
  empty.length = 0;
  if (tide_response_bound(&empty) > sizeof plain->text)
    return false;
  plain->length = tide_response_head(plain->text, &empty, &facts, &framing);
  const char *at = memmem(plain->text, plain->length, field, sizeof field - 1);
  if (at == NULL || facts.close)
    return false;
  plain->number = (size_t)(at - plain->text) + sizeof field - 2;
  plain->type = answer->type;
  plain->headers = answer->headers;
  plain->idle = listener->idle_text;
  plain->until = listener->http->date_until;
  return true;
}

static const tide_plain_head *head_for(const tide_listener *listener,
                                       const tide_answer *answer) {
  tide_http *http = listener->http;
  uint64_t now = tide_http__now(http);
  for (size_t i = 0; i < 2; i++) {
    const tide_plain_head *p = &http->plain[i];
    if (p->type == answer->type && p->headers == answer->headers &&
        p->idle == listener->idle_text && now < p->until)
      return p;
  }
  tide_plain_head *made = &http->plain[http->plain_next];
  http->plain_next ^= 1;
  return make(made, listener, answer) ? made : NULL;
}

static char *put(char *at, const char *text, size_t length) {
  memcpy(at, text, length);
  return at + length;
}

bool tide_answer__plain(tide_exchange *exchange, const tide_answer *answer) {
  const tide_request *request = &exchange->request;
  tide_conn *conn = exchange->conn;
  tide_http *http = conn->listener->http;
  if (!answer->constant || answer->status != 200 || http->batch != conn ||
      request->method == HTTP_HEAD || request->http_1_0 ||
      tide_answer__is_last(exchange))
    return false;
  const tide_plain_head *plain = head_for(conn->listener, answer);
  if (plain == NULL || answer->length > TIDE_OUT_SIZE ||
      http->out_length + plain->length + DIGITS + answer->length >
          TIDE_OUT_SIZE)
    return false;
  char *from = http->out + http->out_length;
  char *at = put(from, plain->text, plain->number);
  at = tide_response_number(at, answer->length);
  at = put(at, plain->text + plain->number + 1,
           plain->length - plain->number - 1);
  at = put(at, answer->body, answer->length);
  http->out_length += (size_t)(at - from);
  exchange->sent = (size_t)(at - from);
  exchange->status = 200;
  exchange->framing = TIDE_FRAMING_LENGTH;
  exchange->head_sent = true;
  return true;
}
