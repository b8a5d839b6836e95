"""The write protocol: rows to files, their compaction, one commit, and what stays if it fails."""
