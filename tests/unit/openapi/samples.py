"""Documents that are small and use much of each version, for tests that break them or look for silent losses."""

from typing import Any, Final

OPENAPI_2: Final[dict[str, Any]] = {
    "swagger": "2.0",
    "info": {"title": "Deals", "version": "2", "license": {"name": "MIT"}},
    "host": "{region}.api.test",
    "basePath": "/v1/",
    "schemes": ["http", "https"],
    "consumes": ["application/json"],
    "produces": ["application/json", "text/csv"],
    "securityDefinitions": {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "oauth": {"type": "oauth2", "flow": "application", "tokenUrl": "https://a.test/token", "scopes": {"r": "Read"}},
        "login": {"type": "basic", "description": "Name and password."},
    },
    "security": [{"key": []}, {"oauth": ["r"]}],
    "parameters": {"Limit": {"name": "limit", "in": "query", "type": "integer", "maximum": 100, "default": 10}},
    "responses": {"Bad": {"description": "Bad.", "schema": {"$ref": "#/definitions/Error"}}},
    "definitions": {
        "Deal": {
            "type": "object",
            "required": ["name", "id"],
            "discriminator": "kind",
            "properties": {
                "id": {"type": "string", "readOnly": True},
                "name": {"type": "string", "minLength": 1, "example": "Acme"},
                "kind": {"type": "string", "enum": ["Big", "Small"]},
                "next": {"$ref": "#/definitions/Deal"},
            },
        },
        "Big": {"allOf": [{"$ref": "#/definitions/Deal"}, {"properties": {"amount": {"type": "number"}}}]},
        "Error": {"type": "object", "properties": {"message": {"type": "string"}}},
        "Unused": {"type": "string"},
    },
    "tags": [{"name": "Deals", "description": "All about deals."}],
    "paths": {
        "/deals": {
            "parameters": [{"$ref": "#/parameters/Limit"}],
            "get": {
                "tags": ["Deals"],
                "summary": "List deals",
                "parameters": [
                    {"name": "stage", "in": "query", "type": "array", "items": {"type": "string"}},
                    {
                        "name": "owner",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "integer"},
                        "collectionFormat": "multi",
                    },
                    {"name": "offset", "in": "query", "type": "integer"},
                ],
                "responses": {
                    "200": {
                        "description": "Deals.",
                        "schema": {
                            "type": "object",
                            "properties": {
                                "total": {"type": "integer"},
                                "items": {"type": "array", "items": {"$ref": "#/definitions/Deal"}},
                            },
                        },
                        "headers": {"X-Rate": {"type": "integer"}},
                        "examples": {"application/json": {}},
                    },
                    "400": {"$ref": "#/responses/Bad"},
                },
            },
            "post": {
                "operationId": "deals.create",
                "parameters": [
                    {"name": "deal", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Deal"}}
                ],
                "responses": {"201": {"description": "Made.", "schema": {"$ref": "#/definitions/Deal"}}},
                "security": [{"login": []}],
            },
        },
        "/deals/{id}/files": {
            "post": {
                "consumes": ["multipart/form-data"],
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "type": "string", "pattern": "^[a-z]+$"},
                    {"name": "file", "in": "formData", "required": True, "type": "file", "description": "The file."},
                    {"name": "note", "in": "formData", "type": "string"},
                    {"name": "X-Key", "in": "header", "type": "string"},
                ],
                "responses": {"200": {"description": "Stored.", "schema": {"type": "file"}}},
            }
        },
    },
}
OPENAPI_3: Final[dict[str, Any]] = {
    "openapi": "3.0.3",
    "info": {"title": "Deals", "version": "3", "description": "An API.", "x-logo": "a.png"},
    "servers": [
        {"url": "https://{region}.api.test/v1", "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}}},
        {"url": "https://test.test", "description": "Test."},
    ],
    "security": [{"token": []}],
    "tags": [{"name": "deals", "description": "All about deals."}, {"name": "old"}],
    "paths": {
        "/deals": {
            "summary": "Deals",
            "get": {
                "tags": ["deals", "crm"],
                "operationId": "listDeals",
                "description": "Lists *deals*.",
                "parameters": [
                    {"name": "cursor", "in": "query", "required": True, "schema": {"type": "string"}},
                    {"$ref": "#/components/parameters/Limit"},
                    {
                        "name": "filter",
                        "in": "query",
                        "style": "deepObject",
                        "explode": True,
                        "schema": {"type": "object", "properties": {"stage": {"type": "string"}}},
                    },
                    {"name": "json", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
                ],
                "responses": {
                    "200": {
                        "description": "A page.",
                        "headers": {"X-Total": {"schema": {"type": "integer"}}},
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Page"}},
                            "application/xml": {"schema": {"type": "string"}},
                        },
                        "links": {"next": {"operationId": "listDeals"}},
                    },
                    "4XX": {"$ref": "#/components/responses/Problem"},
                },
            },
            "post": {
                "operationId": "createDeal",
                "requestBody": {
                    "description": "The deal.",
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/Deal"},
                            "example": {"name": "Acme"},
                        },
                        "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Deal"}},
                    },
                },
                "responses": {"201": {"description": "Made."}, "default": {"description": "Other."}},
                "callbacks": {"changed": {"{$request.body#/url}": {"post": {"responses": {}}}}},
                "security": [{"token": [], "key": []}, {}],
                "deprecated": True,
            },
        },
        "/deals/{id}/picture": {
            "servers": [{"url": "https://files.test"}],
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "put": {
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "required": ["picture"],
                                "properties": {
                                    "picture": {"type": "string", "format": "binary"},
                                    "meta": {"type": "object"},
                                },
                            },
                            "encoding": {"picture": {"contentType": "image/png, image/jpeg"}},
                        }
                    }
                },
                "responses": {"204": {"description": "Stored."}},
            },
            "get": {"responses": {"200": {"description": "It.", "content": {"image/png": {}}}}},
        },
    },
    "components": {
        "parameters": {
            "Limit": {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 50, "default": 20}}
        },
        "responses": {
            "Problem": {
                "description": "A problem.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }
        },
        "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            "key": {"type": "apiKey", "in": "query", "name": "key"},
        },
        "schemas": {
            "Page": {
                "type": "object",
                "title": "Page",
                "properties": {
                    "next_cursor": {"type": "string", "nullable": True},
                    "items": {"type": "array", "items": {"$ref": "#/components/schemas/Deal"}},
                },
            },
            "Deal": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "id": {"type": "string", "readOnly": True, "xml": {"attribute": True}},
                    "name": {"type": "string", "maxLength": 100, "x-order": 1},
                    "secret": {"type": "string", "writeOnly": True},
                    "amount": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "default": 1},
                    "party": {
                        "oneOf": [{"$ref": "#/components/schemas/Person"}, {"$ref": "#/components/schemas/Firm"}],
                        "discriminator": {"propertyName": "kind", "mapping": {"p": "Person", "f": "Firm"}},
                    },
                    "parent": {"$ref": "#/components/schemas/Deal"},
                },
            },
            "Person": {"type": "object", "properties": {"kind": {"type": "string"}}},
            "Firm": {"type": "object", "properties": {"kind": {"type": "string"}}, "not": {"required": ["age"]}},
            "Problem": {"type": "object", "properties": {"title": {"type": "string"}}},
        },
    },
}
OPENAPI_31: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {"title": "Deals", "version": "3.1"},
    "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
    "servers": [{"url": "https://api.test"}],
    "paths": {
        "/trees/{id}": {"$ref": "#/components/pathItems/Tree"},
        "/events": {
            "post": {
                "requestBody": {"content": {"text/plain": {"schema": {"type": "string", "description": "Free text."}}}},
                "responses": {
                    "200": {
                        "description": "Lines.",
                        "content": {"application/x-ndjson": {"schema": {"type": ["object", "null"]}}},
                    },
                    "202": {"description": "Later."},
                },
            }
        },
    },
    "webhooks": {"changed": {"post": {"responses": {}}}},
    "components": {
        "pathItems": {
            "Tree": {
                "get": {
                    "parameters": [
                        {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "const": "a"}}
                    ],
                    "responses": {
                        "2XX": {
                            "description": "",
                            "content": {"application/hal+json": {"schema": {"$ref": "#/components/schemas/Tree"}}},
                        }
                    },
                }
            }
        },
        "schemas": {
            "Tree": {
                "$id": "https://api.test/schemas/tree",
                "$dynamicAnchor": "node",
                "type": "object",
                "properties": {
                    "data": {"$ref": "#/$defs/data", "description": "Beside a reference."},
                    "children": {"type": "array", "items": {"$dynamicRef": "#node"}},
                },
                "patternProperties": {"^x": True},
                "unevaluatedProperties": False,
                "$defs": {"data": {"$anchor": "data", "type": ["integer", "null"], "examples": [1, 2]}},
            }
        },
    },
}
SAMPLES: Final = {"2.0": OPENAPI_2, "3.0": OPENAPI_3, "3.1": OPENAPI_31}
