from django.urls import include, path

from . import receivers, views  # noqa: F401  # the receivers are connected when they are imported

urlpatterns = [
    path("", views.notice),
    path("mcp/", include("mcp_sync.contrib.django.urls")),  # status page, its JSON, health check
]
