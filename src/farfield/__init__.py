"""How far does a retriever reach beyond its training data?"""
