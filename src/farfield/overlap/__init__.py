"""What training and test data share: labels, queries, entities, intents.

Each module answers for one kind of overlap; :func:`farfield.audit` brings them together.
"""
