"""The rules of the contract: what each demands, what breaks it, and what to do instead.

``docs/reference/receiver-contract.md`` has the same texts; a test compares them.
"""

EXPLANATIONS = {
    "returns-in-time": (
        "A call on the host's loop finishes within the budget, because the host serves no client "
        "while it runs. The rule fails only if the call is slow in each of five rounds, so a busy "
        "machine alone does not break it. A forwarder or a source has a separate loop, which it must "
        "not block for longer than the budget: otherwise timeouts and the stop are late.\n"
        "Broken by: a blocking socket, `time.sleep`, a lock held during a request. Put the push "
        "into a bounded queue that a thread sends, or write a forwarder."
    ),
    "changes-nothing": (
        "The plugin does not change payload, context, batch or tags, because all plugins get the "
        "same objects.\n"
        "Broken by: `payload.data = ...`, `batch.clear()`, a `pop` on the tags. Copy what you "
        "change."
    ),
    "keeps-nothing": (
        "After the call (after `close` for a forwarder and with `flush`), the plugin holds no "
        "reference to payloads, their bytes or contexts. It may keep the last push but no earlier "
        "ones: a context references its connection, and a list of them would grow as long as the "
        "host runs.\n"
        "Broken by: a list, or a cache keyed by context. Copy the fields you need into a bounded "
        "structure."
    ),
    "closes-unused": (
        "`close` works before the first call, without `start`, and a second time. The host also "
        "closes a plugin whose start failed.\n"
        "Broken by: `self.session.close()` if there is no session yet."
    ),
    "starts-twice": (
        "Two instances work side by side, and closing one does not affect the other: tests and "
        "programs run several hosts in one process. A forwarder can be started twice, and a source "
        "runs again after its call was cancelled.\n"
        "Broken by: state shared by a class or module, such as a global session or a closed flag on "
        "the class."
    ),
    "empty": (
        "The plugin accepts an empty payload, no metrics, no client id, and an empty client id, "
        "user or batch. A forwarder does get empty pushes: they show that the client is alive.\n"
        "Broken by: `data[0]`, `client_id.split(...)` if it is None."
    ),
    "terminating": (
        "The terminating push of a client arrives like any other.\n"
        "Broken by: cleaning up before sending if `payload.terminating` is true."
    ),
    "huge": (
        "The plugin accepts four MiB of metrics and a client id of 32767 characters. A forwarder "
        "may raise `Reject`, but the next batch must arrive. The budget of R1 does not apply here.\n"
        "Broken by: a fixed buffer, a column of 255 characters."
    ),
    "undecodable": (
        "The plugin survives a payload of garbage. A receiver may raise an ordinary exception, "
        "which the host counts, and a forwarder may raise `Reject` or `Retry`; the next push is "
        "accepted and arrives. A source passes over a push that the host refuses. Enrichers and quota "
        "callbacks accept names with quotes, line breaks, "
        "NUL characters and emoji.\n"
        'Broken by: a parser that keeps its state after an error, `sys.exit`, `encode("ascii")`.'
    ),
    "concurrent": (
        "Concurrent calls from several threads, or several concurrent `deliver` of a forwarder, "
        "raise nothing and lose nothing. The host itself makes one call at a time.\n"
        "Broken by: shared state without a lock."
    ),
    "spoofed": (
        "The plugin does not trust names that clients choose. Pushes of several clients with the "
        "same labels all arrive. A client id cannot add labels of an enricher or change those "
        "derived from the principal. Clients of two users with separate budgets cannot share one by "
        "choosing their client ids.\n"
        "Broken by: identifying clients by labels of the payload, parsing `name=value` in a client "
        'id, `f"{user}:{client_id}"` as a tag.'
    ),
    "far-side-down": (
        "A forwarder raises `Retry` in time and delivers when the destination is back. A receiver "
        "keeps accepting pushes and reconnects to its destination; it drops and counts pushes that "
        "it cannot keep. A source reads on when its place of origin is back; meanwhile `run` may "
        "raise an ordinary exception.\n"
        "Broken by: returning although nothing was delivered, `Reject`, a thread that ends with the "
        "first error."
    ),
    "far-side-slow": (
        "A receiver stays within its budget. A forwarder's `deliver` ends when it is cancelled, "
        "does not return before the batch has arrived, and delivers it later. A source's `run` ends "
        "when it is cancelled, even if the host is storing its records.\n"
        "Broken by: `except CancelledError: continue`, `except BaseException`, a blocking call."
    ),
    "far-side-refusing": (
        "A forwarder raises `Reject` or `Retry` and does not return. A receiver keeps accepting "
        "pushes. When the destination is up again, pushes arrive.\n"
        "Broken by: ignoring the status of a response."
    ),
    "flushes": (
        "When `close` returns, all pushes that a receiver accepted, and all batches for which a "
        "forwarder's `deliver` returned, have arrived at the destination. With a slow destination, "
        "`close` gives up within `close_s`. A source tells its place of origin only what is stored: "
        "what was not stored when `run` ended comes again.\n"
        "Broken by: a queue that is abandoned, a background task that is cancelled, a flush without "
        "a deadline."
    ),
    "accounts": (
        "Each push of a receiver is delivered, dropped or waiting at any time, and none is waiting "
        "after `close`. Records that a forwarder names in `Retry` and `Reject` belong to the batch, "
        "none is both delivered and refused, and those named as delivered have arrived. A quota "
        "callback returns the quota that an operator set, and the previous one after it is removed. A "
        "source offers records again for which the host had no room, in order, and loses none.\n"
        "Broken by: uncounted drops, `delivered=batch` for a batch that was refused, copies of "
        "records."
    ),
    "answers-as-agreed": (
        "`export_metrics` returns None and is not a coroutine function, because the host does not "
        "await it. A forwarder's methods and `run` of a source are coroutine functions and return "
        "None. The lag is None or a whole number of at least 0. Labels and tags "
        "are mappings of strings, and names of labels are not empty. A limit is None or a number of "
        "at least 0.\n"
        "Broken by: `async def export_metrics`, a label that is None or a number: the host then "
        "drops all labels of the enricher."
    ),
    "same-names": (
        "Pushes arrive in which labels of the client and attributes of data points have the same names, "
        "or names that differ in characters that a label cannot have.\n"
        "Broken by: one set of labels for a series, `dict(**labels, **attributes)`, a request that the "
        "destination refuses because a label is there twice."
    ),
}
"""The text of each rule by its name, starting with R1. They are the same for every kind of plugin."""
THREADS_TITLE = "Threads"
THREADS = (
    "No thread of the plugin ends with an exception while a rule is checked: a host would not notice, "
    "the plugin would just stop working.\n"
    "Broken by: a loop that one bad push or one lost connection ends. Catch the exception inside the "
    "loop, count it, and continue with the next push."
)
"""The demand of every rule."""
