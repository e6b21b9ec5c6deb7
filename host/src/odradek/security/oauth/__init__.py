"""The mechanism OAUTHBEARER (RFC 7628): its messages, its tokens, and the keys that verify them.

Only the modules that verify signatures need the extra ``odradek[oauth]``; they are imported when a listener
enables the mechanism.
"""
