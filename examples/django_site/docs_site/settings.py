"""The settings: what is not about MCP is as small as it can be."""

import os

DEBUG = True
SECRET_KEY = os.environ.get("SECRET_KEY", "only for this example")
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "docs_site.urls"
USE_TZ = True
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]

INSTALLED_APPS = ["docs_site", "mcp_sync.contrib.django"]

MCP_SERVERS = {
    "default": {
        "target": os.environ["DOCS_MCP_URL"],
        "watch": ["docs://notices/today"],  # kept current from its first use on
        "timeout": 5,
        # "auth": "docs_site.credentials.of_the_site",  # what requests takes, by the dotted path to it
    },
}

MCP_STATUS_PAGE = True  # off by default
MCP_STATUS_GUARD = "docs_site.guards.on_this_machine"  # without this: the staff

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"docs_site": {"handlers": ["console"], "level": "INFO"}},
}
