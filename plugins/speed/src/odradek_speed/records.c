/* Checks the records of a batch without making objects of them, after org.apache.kafka.common.record.DefaultRecord.
 * `odradek.wire.record_scan` has the same function in Python, which is used where this one is missing.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef struct {
    const uint8_t *bytes;
    Py_ssize_t at, end; /* after a failure at == end + 1, so that every later step fails, too */
} Cursor;

/* A signed zig-zag varint of 32 or 64 bits. */
static int64_t number(Cursor *c, int bits)
{
    uint64_t value = 0;
    for (int shift = 0; c->at < c->end; shift += 7) {
        uint64_t byte = c->bytes[c->at++];
        if (bits - shift < 8 && byte >> (bits - shift)) /* the last byte has no more bits than are left */
            break;
        value |= (byte & 0x7F) << shift;
        if (byte < 0x80)
            return (int64_t)(value >> 1 ^ -(value & 1));
    }
    c->at = c->end + 1;
    return 0;
}

/* Skips a key or a value; its length is -1 if it is null. */
static int64_t field(Cursor *c)
{
    int64_t length = number(c, 32);
    if (length < -1 || length > c->end - c->at)
        c->at = c->end + 1;
    else if (length > 0)
        c->at += (Py_ssize_t)length;
    return length;
}

static PyObject *walk_records(PyObject *module, PyObject *arguments)
{
    Py_buffer body;
    Py_ssize_t count, done = 0, start = 0;
    long long base_ms, headers_left, latest_ms = -INT64_MAX, earliest_ms = INT64_MAX;
    int null_key = 0, consecutive = 1;
    if (!PyArg_ParseTuple(arguments, "y*nLL", &body, &count, &base_ms, &headers_left))
        return NULL;
    for (; done < count; done++) {
        Cursor c = {body.buf, start, body.len};
        int64_t length = number(&c, 32);
        if (length < 0 || length > c.end - c.at)
            break;
        c.end = c.at + (Py_ssize_t)length;
        c.at++; /* the attributes, which mean nothing yet */
        int64_t delta_ms = number(&c, 64), offset = number(&c, 32), key = field(&c);
        field(&c);
        int64_t headers = number(&c, 32);
        if (headers < 0 || headers > (c.end - c.at) / 2 || headers > headers_left)
            break;
        for (int64_t left = headers; left > 0; left--) {
            if (field(&c) < 0)
                c.at = c.end + 1; /* the key of a header is not null */
            field(&c);
        }
        int64_t time_ms = (int64_t)((uint64_t)base_ms + (uint64_t)delta_ms);
        if (c.at != c.end || time_ms == INT64_MIN || ((base_ms ^ time_ms) & (delta_ms ^ time_ms)) < 0)
            break;
        headers_left -= headers;
        null_key |= key < 0;
        consecutive &= offset == done;
        if (time_ms > latest_ms)
            latest_ms = time_ms;
        if (time_ms < earliest_ms && time_ms != -1)
            earliest_ms = time_ms;
        start = c.end;
    }
    PyBuffer_Release(&body);
    return Py_BuildValue("nnLLNNL", done, start, latest_ms, earliest_ms, PyBool_FromLong(null_key),
                         PyBool_FromLong(consecutive), headers_left);
}

static PyMethodDef functions[] = {{"walk_records", walk_records, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "records", NULL, 0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_records(void)
{
    return PyModuleDef_Init(&module);
}
